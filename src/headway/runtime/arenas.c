/* Memory of a server's objects in pages of 2 MB, as far as the system has such pages.
 *
 * The machine code of arenas.py, made by `headway compile`. A server with a million
 * tenants looks at some thirty places of its memory for each job, nearly each on another
 * page. The processor knows where a few thousand pages lie, and has to look up where all
 * others do, in tables that are memory themselves. Large pages are 512 times fewer.
 *
 * The interpreter's allocator gets its memory in arenas, and lets others supply them.
 * Here they are cut from chunks of address space for which large pages are wanted. An
 * arena that comes back is the next to be supplied; a page goes back to the system when
 * all of its arenas have come back, and then is a large one again when it is next used.
 *
 * A large page is cleared in half a millisecond, and in four where a machine's host has to
 * find it first. So a thread has the next two cleared before anybody needs them.
 */
#define PY_SSIZE_T_CLEAN
#define _GNU_SOURCE
#include <Python.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#ifndef MADV_HUGEPAGE
#error "this system has no pages of 2 MB that are to be had for the asking"
#endif

/* Not in every header yet. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static const size_t PAGE = (size_t)1 << 21;
/* Address space, which costs nothing until it is written to. */
static const size_t CHUNK = (size_t)1 << 26;
/* Pages that are chosen before they are needed, and most that a thread is told of at once. */
enum { AHEAD = 2, TOLD = 8 };

/* Addresses in a list that grows. */
typedef struct {
    uintptr_t *items;
    size_t count, room;
} List;

/* What supplied arenas before, and still does what can't be done here. */
static PyObjectArenaAllocator before;
static int is_used;
/* All arenas are of the size of the first. */
static size_t arena_size;
static List chunks, unused_arenas, unused_pages;
/* What is left of the last chunk, and of the last page. */
static uintptr_t next_page, end_page, next_arena, end_arena;
/* The pages that come next, in a ring. */
static uintptr_t ahead[AHEAD];
static size_t begun;
/* What the thread is to clear, in another: how much it has cleared, and was told of. */
static uintptr_t told[TOLD];
static atomic_size_t cleared, telling;
static sem_t is_told;
static int has_thread;

static int push(List *list, uintptr_t item)
{
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        void *items = PyMem_RawRealloc(list->items, room * sizeof(uintptr_t));
        if (!items)
            return 0;
        list->items = items;
        list->room = room;
    }
    list->items[list->count++] = item;
    return 1;
}

static int is_ours(uintptr_t address)
{
    for (size_t i = 0; i < chunks.count; i++)
        if (address - chunks.items[i] < CHUNK)
            return 1;
    return 0;
}

/* One more chunk, which begins where a large page may. */
static int reserve(void)
{
    void *space = mmap(NULL, CHUNK + PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED)
        return 0;
    uintptr_t begin = (uintptr_t)space, first = (begin + PAGE - 1) & ~(PAGE - 1);
    if (first > begin)
        munmap(space, first - begin);
    if (begin + PAGE > first)
        munmap((void *)(first + CHUNK), begin + PAGE - first);
    if (!push(&chunks, first)) {
        munmap((void *)first, CHUNK);
        return 0;
    }
    /* Where it is refused they are small ones, as all others are. */
    madvise((void *)first, CHUNK, MADV_HUGEPAGE);
    next_page = first;
    end_page = first + CHUNK;
    return 1;
}

static void *clear(void *none)
{
    for (;;) {
        while (sem_wait(&is_told))
            ;
        size_t count = atomic_load(&cleared);
        /* Nothing is written: a page that is in use by now stays what it is. */
        madvise((void *)told[count % TOLD], PAGE, MADV_POPULATE_WRITE);
        atomic_store(&cleared, count + 1);
    }
    return NULL;
}

static void have_cleared(uintptr_t page)
{
    size_t count = atomic_load(&telling);
    /* Where it falls behind, whoever writes to a page first has it cleared. */
    if (!has_thread || count - atomic_load(&cleared) == TOLD)
        return;
    told[count % TOLD] = page;
    atomic_store(&telling, count + 1);
    sem_post(&is_told);
}

/* A page that was given back, or that none has been of; 0 if there is none to be had. */
static uintptr_t choose_page(void)
{
    uintptr_t page;
    if (unused_pages.count)
        return unused_pages.items[--unused_pages.count];
    if (next_page == end_page && !reserve())
        return 0;
    page = next_page;
    next_page += PAGE;
    return page;
}

/* The next arenas are those of the page that was chosen first, if one was. */
static int begin_page(void)
{
    uintptr_t *place = &ahead[begun++ % AHEAD], page = *place;
    *place = choose_page();
    if (*place)
        have_cleared(*place);
    next_arena = page;
    end_arena = page ? page + PAGE : page;
    return page != 0;
}

/* Some pages are chosen from the start. */
static void look_ahead(void)
{
    pthread_t thread;
    sigset_t all, had;
    if (sem_init(&is_told, 0, 0) == 0) {
        /* Signals are for the interpreter's own threads. */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &had);
        has_thread = pthread_create(&thread, NULL, clear, NULL) == 0;
        pthread_sigmask(SIG_SETMASK, &had, NULL);
        if (has_thread)
            pthread_detach(thread);
    }
    for (int i = 0; i < AHEAD; i++)
        if ((ahead[i] = choose_page()))
            have_cleared(ahead[i]);
}

static void *supply(void *context, size_t size)
{
    if (!arena_size && PAGE % size == 0)
        arena_size = size;
    if (size != arena_size)
        return before.alloc(before.ctx, size);
    if (unused_arenas.count)
        return (void *)unused_arenas.items[--unused_arenas.count];
    if (next_arena == end_arena && !begin_page())
        return before.alloc(before.ctx, size);
    uintptr_t arena = next_arena;
    next_arena += size;
    return (void *)arena;
}

/* Gives the page back if none of its arenas is in use. */
static void give_back(uintptr_t page)
{
    size_t kept = 0, count = unused_arenas.count;
    for (size_t i = 0; i < count; i++)
        kept += unused_arenas.items[i] - page >= PAGE;
    if (kept + PAGE / arena_size != count)
        return;
    /* In place of it, not only without what was in it: else the system remembers it as
     * many small ones. */
    if (mmap((void *)page, PAGE, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        return;
    madvise((void *)page, PAGE, MADV_HUGEPAGE);
    if (!push(&unused_pages, page))
        return;
    kept = 0;
    for (size_t i = 0; i < count; i++)
        if (unused_arenas.items[i] - page >= PAGE)
            unused_arenas.items[kept++] = unused_arenas.items[i];
    unused_arenas.count = kept;
}

static void take_back(void *context, void *arena, size_t size)
{
    if (!is_ours((uintptr_t)arena)) {
        before.free(before.ctx, arena, size);
        return;
    }
    /* Without memory to note it in, its place is not used again: that is all. */
    if (push(&unused_arenas, (uintptr_t)arena))
        give_back((uintptr_t)arena & ~(PAGE - 1));
    else
        madvise(arena, size, MADV_DONTNEED);
}

/* use(): whether anything is done */
static PyObject *use(PyObject *self, PyObject *none)
{
    if (!is_used) {
        PyObjectArenaAllocator ours = {NULL, supply, take_back};
        PyObject_GetArenaAllocator(&before);
        PyObject_SetArenaAllocator(&ours);
        look_ahead();
        is_used = 1;
    }
    Py_RETURN_TRUE;
}

static PyMethodDef methods[] = {
    {"use", use, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "headway.runtime.arenas",
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit_arenas(void) { return PyModuleDef_Init(&definition); }
