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
 */
#define PY_SSIZE_T_CLEAN
#define _GNU_SOURCE
#include <Python.h>
#include <stdint.h>
#include <sys/mman.h>

#ifndef MADV_HUGEPAGE
#error "this system has no pages of 2 MB that are to be had for the asking"
#endif

static const size_t PAGE = (size_t)1 << 21;
/* Address space, which costs nothing until it is written to. */
static const size_t CHUNK = (size_t)1 << 26;

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

/* The next arenas are those of a page that none has been of, or that was given back. */
static int begin_page(void)
{
    uintptr_t page;
    if (unused_pages.count)
        page = unused_pages.items[--unused_pages.count];
    else {
        if (next_page == end_page && !reserve())
            return 0;
        page = next_page;
        next_page += PAGE;
    }
    next_arena = page;
    end_arena = page + PAGE;
    return 1;
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
