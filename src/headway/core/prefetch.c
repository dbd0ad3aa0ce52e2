/* Asks the processor for memory that is about to be looked at, and waits for none of it.
 *
 * The machine code of prefetch.py, made by `headway compile`: same names, same arguments.
 * Nothing is changed, and nothing is kept. It goes from object to object by the fields
 * that the compiler of the other modules has laid out, and in steps: each step follows,
 * for all that it was given, what the step before has asked for. So the processor waits
 * for many lines of memory at a time, and not for one after the other.
 */
#define PY_SSIZE_T_CLEAN
#define Py_BUILD_CORE_MODULE 1
#include <Python.h>
#include <structmember.h>
#include <stdint.h>
/* How compiled classes lie in memory: written along with their code. */
#include "__native_headway.h"
/* Where entries of a dictionary lie: nothing but the interpreter's own header says it. */
#include "internal/pycore_dict.h"
#include "internal/pycore_gc.h"

#define OBJECT(name) headway___core___##name##Object

typedef OBJECT(entitlement___Account) Account;
typedef OBJECT(fairness___Tenancy) Tenancy;
typedef OBJECT(fairness___TenantRule) TenantRule;
typedef OBJECT(job___Job) Job;
typedef OBJECT(lane___TenancyTier) TenancyTier;
typedef OBJECT(limits___Gauge) Gauge;
typedef OBJECT(odd___Entry) Entry;
typedef OBJECT(order___Line) Line;
typedef OBJECT(part___Hold) Hold;
typedef OBJECT(register___Register) Register;
typedef OBJECT(strand___Strand) Strand;
typedef OBJECT(timers___Bucket) Bucket;
typedef OBJECT(timers___TimeBuckets) TimeBuckets;
typedef OBJECT(turn___Turn) Turn;
typedef OBJECT(usage___Use) Use;

enum {
    LINE = 64,
    /* Where the allocator notes what is freed is at the beginning of so many bytes. */
    POOL = 1 << 14,
    /* Bytes of what a job is told to do, and of a short name. */
    SPEC = 176,
    NAME = 64,
    /* What a dictionary of a few labels has beside it. */
    KEYS = 160,
    /* A tuple with one item. */
    ONE = sizeof(PyTupleObject),
    /* Objects in one step. */
    ROOM = 512,
    /* How far apart a register has the places of two numbers in a row: register.py. */
    SPREAD = 3,
    /* More lines than an order ever has. */
    LINES = 16,
    /* Buckets of timers that are found by their number: timers.py. */
    KNOWN = 64,
    /* Places of a dictionary at which a name is looked for. */
    PROBES = 3,
    /* How the next of them is found, as the interpreter does it. */
    PERTURB = 5,
    /* What is asked of objects at most: fields lie in the order of their use, and a line
     * that nobody looks at takes the place of another. */
    ACCOUNT = offsetof(Account, _tenancies),
    GAUGE = offsetof(Gauge, _limit),
    RULE = offsetof(TenantRule, _name),
    START = offsetof(Job, _result_ms),
    NEXT = offsetof(Job, _cost) + sizeof(void *),
    TIER = offsetof(TenancyTier, _lane_tier) + sizeof(void *),
    USE = offsetof(Use, _others),
    HOLD = offsetof(Hold, _is_open),
};

typedef struct {
    int count;
    PyObject *items[ROOM];
} Some;

/* Nothing yet: all but the count stays as it is. */
#define SOME(name) \
    Some name;     \
    name.count = 0

/* The classes by which members of one place are told apart. */
static PyTypeObject *spec_type, *job_type, *line_type, *register_type, *strand_type, *tier_type,
    *timers_type, *turn_type;

/* Where in a spec its labels are; 0 if that is not known. */
static Py_ssize_t labels_at;

/* A compiler that sees that a function changes nothing and answers nothing may leave out its
 * calls, and one did. This, which is no code, counts as a change. */
#define IS_NEEDED __asm__ volatile("")

/* What only asks is part of its caller. */
#define ASKS static inline __attribute__((always_inline)) void

/* Into the second cache: the first is too small for what a batch needs. */
ASKS ask_line(const void *place) { __builtin_prefetch(place, 1, 2); }

/* The compiler knows how many, mostly, and needs no loop then. */
ASKS ask(const void *object, size_t size)
{
    for (size_t at = 0; at < size; at += LINE)
        ask_line((const char *)object + at);
    ask_line((const char *)object + size - 1);
}

/* It is about to go: the allocator writes that down. */
ASKS ask_pool(const void *object)
{
    ask_line((const void *)((uintptr_t)object & ~(uintptr_t)(POOL - 1)));
}

static inline int is_there(const PyObject *object)
{
    return object && object != Py_None;
}

/* What was added just now is on its way: many share a strand, a rule or a limit. */
ASKS add(Some *some, PyObject *object, size_t size)
{
    int count = some->count;
    if (!is_there(object) || count == ROOM || (count && some->items[count - 1] == object))
        return;
    ask(object, size);
    some->items[count] = object;
    some->count = count + 1;
}

/* Numbers of compiled code are shifted by one; great ones are objects. */
static inline int is_small(CPyTagged number) { return !(number & 1); }

static inline int64_t value_of(CPyTagged number) { return (int64_t)number >> 1; }

/* The place of a number in a register; NULL if it has none. */
static PyObject **slot_of(Register *numbers, int64_t number)
{
    PyObject *places = numbers->__places;
    if (!places || !is_small(numbers->__mask) || !is_small(numbers->__half))
        return NULL;
    int64_t place = number * SPREAD & value_of(numbers->__mask);
    int64_t most = PyList_GET_SIZE(places);
    if (place >= most)
        place -= value_of(numbers->__half);
    return place >= 0 && place < most ? &PyList_GET_ITEM(places, place) : NULL;
}

/* Where the timer of a job is: in a bucket that was asked for lately, mostly. */
ASKS ask_timer(TimeBuckets *timers, Job *job)
{
    PyObject *known = timers->__known;
    if (!known || !is_small(job->_timer_ms) || !is_small(job->_timer_place))
        return;
    int64_t number = value_of(job->_timer_ms) >> value_of(timers->__shift);
    if (PyList_GET_SIZE(known) != KNOWN)
        return;
    Bucket *bucket = (Bucket *)PyList_GET_ITEM(known, number & (KNOWN - 1));
    if (!is_there((PyObject *)bucket) || !bucket->_keys || !is_small(bucket->_begin) ||
        value_of(bucket->_number) != number)
        return;
    int64_t place = value_of(job->_timer_place) - value_of(bucket->_begin);
    if (place >= 0 && place < PyList_GET_SIZE(bucket->_keys))
        ask_line(&PyList_GET_ITEM(bucket->_keys, place));
}

/* By what a member is about to be entered anew, or called. */
ASKS ask_entries(PyObject *entry, PyObject *bell)
{
    if (is_there(entry))
        ask(entry, sizeof(Entry));
    if (is_there(bell))
        ask(bell, sizeof(Entry));
}

/* What tenants have in a lane, in its queue, and over all queues. */
static void along_tenancies(Some *tenancies, Some *gauges)
{
    IS_NEEDED;
    SOME(rules);
    SOME(tiers);
    for (int i = 0; i < tenancies->count; i++) {
        Tenancy *tenancy = (Tenancy *)tenancies->items[i];
        ask(tenancy->_account, ACCOUNT);
        add(&rules, tenancy->_rule, RULE);
        add(&tiers, tenancy->_entitled, TIER);
    }
    for (int i = 0; i < rules.count; i++)
        add(gauges, ((TenantRule *)rules.items[i])->_gauges, ONE);
    for (int i = 0; i < tiers.count; i++) {
        TenancyTier *tier = (TenancyTier *)tiers.items[i];
        ask_entries(tier->_entry, tier->_bell);
    }
}

/* The first of each of these tuples, which has been asked for. */
ASKS along_tuples(Some *tuples, size_t size)
{
    for (int i = 0; i < tuples->count; i++) {
        PyObject *tuple = tuples->items[i];
        if (PyTuple_GET_SIZE(tuple))
            ask(PyTuple_GET_ITEM(tuple, 0), size);
    }
}

/* What jobs hold of limits; with turns, who waits alone for what comes free, else what is
 * told where a start uses up the rest. */
static void along_holds(Some *tuples, Some *turns)
{
    IS_NEEDED;
    SOME(holds);
    SOME(gauges);
    /* What the one before has as well is on its way already. */
    PyObject *before = NULL;
    for (int i = 0; i < tuples->count; i++) {
        PyObject *tuple = tuples->items[i];
        for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(tuple); n++) {
            PyObject *hold = PyTuple_GET_ITEM(tuple, n);
            if (!before || n >= PyTuple_GET_SIZE(before) ||
                PyTuple_GET_ITEM(before, n) != hold)
                add(&holds, hold, HOLD);
        }
        before = tuple;
    }
    for (int i = 0; i < holds.count; i++) {
        Hold *hold = (Hold *)holds.items[i];
        if (is_there(hold->_part))
            ask(hold->_part, HOLD);
        add(&gauges, hold->_gauge, GAUGE);
    }
    for (int i = 0; i < gauges.count; i++) {
        Gauge *gauge = (Gauge *)gauges.items[i];
        int is_told = turns ? is_there(gauge->_lone) : gauge->_used + 1 >= gauge->_max;
        if (is_told && is_there(gauge->_use))
            ask(gauge->_use, USE);
        if (turns)
            add(turns, gauge->_lone, sizeof(Turn));
    }
}

/* What turns are looked at for; with timers, what it takes to start who is next. */
static void along_turns(Some *turns, TimeBuckets *timers)
{
    IS_NEEDED;
    SOME(tenancies);
    SOME(strands);
    SOME(fronts);
    SOME(holds);
    SOME(gauges);
    for (int i = 0; i < turns->count; i++) {
        Turn *turn = (Turn *)turns->items[i];
        if (Py_TYPE(turn) != turn_type)
            continue;
        ask_entries(turn->_entry, turn->_bell);
        add(&tenancies, turn->_tenancy, sizeof(Tenancy));
        add(&strands, turn->_strand, sizeof(Strand));
        if (timers) {
            add(&holds, turn->_holds, ONE);
            add(&fronts, turn->_front, START);
            continue;
        }
        if (is_there(turn->_back))
            ask_line(&((Job *)turn->_back)->_behind);
        /* It leaves the line of empty turns: its neighbours are told. */
        if (is_there(turn->_emptied_before))
            ask_line(&((Turn *)turn->_emptied_before)->_emptied_after);
        if (is_there(turn->_emptied_after))
            ask_line(&((Turn *)turn->_emptied_after)->_emptied_before);
    }
    along_tenancies(&tenancies, &gauges);
    for (int i = 0; i < strands.count; i++)
        add(&gauges, ((Strand *)strands.items[i])->_gauges, ONE);
    along_tuples(&gauges, GAUGE);
    for (int i = 0; i < fronts.count; i++) {
        Job *job = (Job *)fronts.items[i];
        ask_line(job->_tenant);
        ask_timer(timers, job);
        if (is_there(job->_behind))
            ask(job->_behind, NEXT);
    }
    along_holds(&holds, NULL);
}

/* What goes with jobs that end: their labels, which nothing else has looked at. */
static void along_labels(Some *jobs)
{
    SOME(labels);
    for (int i = 0; labels_at && i < jobs->count; i++) {
        PyObject *spec = ((Job *)jobs->items[i])->_spec;
        if (Py_TYPE(spec) == spec_type)
            add(&labels, *(PyObject **)((char *)spec + labels_at), sizeof(PyDictObject));
    }
    for (int i = 0; i < labels.count; i++)
        if (PyDict_CheckExact(labels.items[i]))
            ask(((PyDictObject *)labels.items[i])->ma_keys, KEYS);
}

/* Whether the arguments are of these classes. */
static int are(PyObject *const *args, Py_ssize_t given, PyTypeObject **wanted,
               Py_ssize_t count)
{
    if (given != count) {
        PyErr_Format(PyExc_TypeError, "takes %zd arguments, not %zd", count, given);
        return 0;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (!PyObject_TypeCheck(args[i], wanted[i])) {
            PyErr_Format(PyExc_TypeError, "%s wanted, not %s", wanted[i]->tp_name,
                         Py_TYPE(args[i])->tp_name);
            return 0;
        }
    return 1;
}

static int at_most(Py_ssize_t count) { return (int)(count < ROOM ? count : ROOM); }

/* ends(leases, jobs, timers, tokens) */
static PyObject *ends(PyObject *self, PyObject *const *args, Py_ssize_t given)
{
    PyTypeObject *wanted[] = {register_type, register_type, timers_type, &PyList_Type};
    if (!are(args, given, wanted, 4))
        return NULL;
    Register *leases = (Register *)args[0], *seqs = (Register *)args[1];
    TimeBuckets *timers = (TimeBuckets *)args[2];
    SOME(jobs);
    SOME(tenancies);
    SOME(holds);
    SOME(turns);
    PyObject **slots[ROOM];
    int places = 0;
    for (int i = 0; i < at_most(PyList_GET_SIZE(args[3])); i++) {
        int64_t token = PyLong_AsLongLong(PyList_GET_ITEM(args[3], i));
        PyObject **slot = slot_of(leases, token);
        if (!slot)
            continue;
        ask_line(slot);
        slots[places++] = slot;
    }
    PyErr_Clear();
    for (int i = 0; i < places; i++) {
        add(&jobs, *slots[i], sizeof(Job));
        if (is_there(*slots[i]))
            ask_line(_Py_AS_GC(*slots[i]));
    }
    for (int i = 0; i < jobs.count; i++) {
        Job *job = (Job *)jobs.items[i];
        /* The collector's list goes on from the one before it to the one behind. */
        ask_line(_PyGCHead_PREV(_Py_AS_GC(job)));
        ask_line(_PyGCHead_NEXT(_Py_AS_GC(job)));
        ask_pool(job);
        ask(job->_spec, SPEC);
        ask_pool(job->_spec);
        ask(job->_tenant, NAME);
        ask_pool(job->_tenant);
        ask_timer(timers, job);
        int64_t place = is_small(job->_seq_place) ? value_of(job->_seq_place) : -1;
        if (seqs->__places && place >= 0 && place < PyList_GET_SIZE(seqs->__places))
            ask_line(&PyList_GET_ITEM(seqs->__places, place));
        add(&tenancies, job->_tenancy, sizeof(Tenancy));
        add(&holds, job->_holds, ONE);
    }
    for (int i = 0; i < tenancies.count; i++)
        ask(((Tenancy *)tenancies.items[i])->_account, ACCOUNT);
    along_holds(&holds, &turns);
    along_turns(&turns, timers);
    along_labels(&jobs);
    Py_RETURN_NONE;
}

/* By what an entry of a line stands there. */
static int64_t rank_of(PyObject *entry) { return value_of(((Entry *)entry)->_rank); }

/* How many entries of a line come before a rank, if they lie evenly between its ends. */
static int64_t below(Line *line, double rank)
{
    int64_t count = PyList_GET_SIZE(line->_entries) - line->_begun;
    double first = (double)rank_of(line->_first), last = (double)rank_of(line->_last);
    if (rank < first)
        return 0;
    return rank >= last ? count : 1 + (int64_t)((count - 1) * (rank - first) / (last - first));
}

/* The members that these lines will give, about so many, the lowest ranks first. */
static void along_lines(Line **lines, int known, int64_t most, Some *tiers)
{
    IS_NEEDED;
    int64_t counts[LINES];
    double low = 0, high = 0;
    for (int i = 0; i < known; i++) {
        double first = (double)rank_of(lines[i]->_first);
        double last = (double)rank_of(lines[i]->_last);
        low = i && low < first ? low : first;
        high = i && high > last ? high : last;
    }
    for (int step = 0; step < 24; step++) {
        double middle = (low + high) / 2;
        int64_t sum = 0;
        for (int i = 0; i < known; i++)
            sum += below(lines[i], middle);
        if (sum < most)
            low = middle;
        else
            high = middle;
    }
    for (int i = 0; i < known; i++) {
        int64_t count = below(lines[i], high);
        counts[i] = count < most ? count : most;
        ask(&PyList_GET_ITEM(lines[i]->_entries, lines[i]->_begun),
            counts[i] * sizeof(void *));
    }
    SOME(entries);
    for (int i = 0; i < known; i++)
        for (int64_t n = 0; n < counts[i]; n++)
            add(&entries,
                PyList_GET_ITEM(lines[i]->_entries, lines[i]->_begun + n),
                sizeof(Entry));
    for (int i = 0; i < entries.count; i++)
        add(tiers, ((Entry *)entries.items[i])->_member, TIER);
}

/* Whether it is a line as it should be. */
static int is_line(PyObject *object)
{
    Line *line = (Line *)object;
    if (Py_TYPE(object) != line_type || !line->_entries || !line->_first || !line->_last)
        return 0;
    return is_small(((Entry *)line->_first)->_rank) &&
           is_small(((Entry *)line->_last)->_rank);
}

static void along_order(PyObject *order, int64_t most, Some *tiers)
{
    Line *lines[LINES];
    int known = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(order) && known < LINES; i++)
        if (is_line(PyList_GET_ITEM(order, i)))
            lines[known++] = (Line *)PyList_GET_ITEM(order, i);
    along_lines(lines, known, most, tiers);
}

/* starts(timers, lines, most, calls, most_called) */
static PyObject *starts(PyObject *self, PyObject *const *args, Py_ssize_t given)
{
    PyTypeObject *wanted[] = {timers_type, &PyList_Type, &PyLong_Type, &PyList_Type,
                              &PyLong_Type};
    if (!are(args, given, wanted, 5))
        return NULL;
    TimeBuckets *timers = (TimeBuckets *)args[0];
    int64_t most = PyLong_AsLongLong(args[2]), most_called = PyLong_AsLongLong(args[4]);
    if (PyErr_Occurred())
        return NULL;
    SOME(tiers);
    SOME(called);
    SOME(turns);
    along_order(args[1], most, &tiers);
    if (most_called)
        along_order(args[3], most_called, &called);
    for (int i = 0; i < tiers.count; i++) {
        PyObject *member = tiers.items[i];
        if (Py_TYPE(member) == tier_type)
            member = ((TenancyTier *)member)->_solo;
        add(&turns, member, sizeof(Turn));
    }
    along_turns(&turns, timers);
    Py_RETURN_NONE;
}

/* Where a name is looked for in a dictionary. */
typedef struct {
    int number;
    size_t hash, perturb, place;
    const char *index;
    PyDictUnicodeEntry *entry;
} Look;

static int64_t read_index(const char *index, unsigned wide)
{
    return wide == 0   ? *(const int8_t *)index
           : wide == 1 ? *(const int16_t *)index
           : wide == 2 ? *(const int32_t *)index
                       : *(const int64_t *)index;
}

/* Whether two strings are the same; their hashes are. */
static inline int is_same(PyObject *name, PyObject *key)
{
    return name == key ||
           (PyUnicode_GET_LENGTH(name) == PyUnicode_GET_LENGTH(key) &&
            PyUnicode_KIND(name) == PyUnicode_KIND(key) &&
            !memcmp(PyUnicode_DATA(name), PyUnicode_DATA(key),
                    PyUnicode_GET_LENGTH(name) * PyUnicode_KIND(name)));
}

/* Entries of a dictionary by names: first its index, then they, then their keys, then
 * what they say, which is found; where a key is another's, the same at the next place. */
static void along_names(PyDictKeysObject *keys, PyObject *names, PyObject *found)
{
    if (keys->dk_kind != DICT_KEYS_UNICODE)
        return;
    Look looks[ROOM];
    unsigned wide = keys->dk_log2_index_bytes - keys->dk_log2_size;
    size_t mask = ((size_t)1 << keys->dk_log2_size) - 1;
    int left = 0;
    for (int i = 0; i < at_most(PyList_GET_SIZE(names)); i++) {
        PyObject *name = PyList_GET_ITEM(names, i);
        if (!PyUnicode_CheckExact(name))
            continue;
        size_t hash = (size_t)PyObject_Hash(name);
        looks[left++] = (Look){i, hash, hash, hash & mask, NULL, NULL};
    }
    for (int probe = 0; probe < PROBES && left; probe++) {
        int known = 0;
        for (int i = 0; i < left; i++) {
            looks[i].index = (const char *)keys->dk_indices + (looks[i].place << wide);
            ask_line(looks[i].index);
        }
        for (int i = 0; i < left; i++) {
            int64_t at = read_index(looks[i].index, wide);
            if (at == DKIX_EMPTY)
                continue;
            looks[i].entry = at < 0 ? NULL : DK_UNICODE_ENTRIES(keys) + at;
            ask_line(looks[i].entry);
            looks[known++] = looks[i];
        }
        left = known;
        for (int i = 0; i < left; i++)
            if (looks[i].entry && looks[i].entry->me_key)
                ask(looks[i].entry->me_key, NAME);
        known = 0;
        for (int i = 0; i < left; i++) {
            Look look = looks[i];
            PyObject *key = look.entry ? look.entry->me_key : NULL;
            if (key && (size_t)((PyASCIIObject *)key)->hash == look.hash &&
                is_same(PyList_GET_ITEM(names, look.number), key)) {
                ask(look.entry->me_value, sizeof(Turn));
                PyList_SetItem(found, look.number, Py_NewRef(look.entry->me_value));
                continue;
            }
            look.perturb >>= PERTURB;
            look.place = (look.place * 5 + look.perturb + 1) & mask;
            looks[known++] = look;
        }
        left = known;
    }
}

/* arrivals(known, names, jobs, first): what is known by these names, None for others;
 * with the places that their jobs will get */
static PyObject *arrivals(PyObject *self, PyObject *const *args, Py_ssize_t given)
{
    PyTypeObject *wanted[] = {&PyDict_Type, &PyList_Type, register_type, &PyLong_Type};
    if (!are(args, given, wanted, 4))
        return NULL;
    int64_t first = PyLong_AsLongLong(args[3]);
    if (first == -1 && PyErr_Occurred())
        return NULL;
    for (int i = 0; i < at_most(PyList_GET_SIZE(args[1])); i++) {
        PyObject **slot = slot_of((Register *)args[2], first + i);
        if (slot)
            ask_line(slot);
    }
    PyObject *found = PyList_New(PyList_GET_SIZE(args[1]));
    if (!found)
        return NULL;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(found); i++)
        PyList_SET_ITEM(found, i, Py_NewRef(Py_None));
    SOME(turns);
    along_names(((PyDictObject *)args[0])->ma_keys, args[1], found);
    for (int i = 0; i < at_most(PyList_GET_SIZE(found)); i++) {
        PyObject *object = PyList_GET_ITEM(found, i);
        if (Py_TYPE(object) == strand_type)
            object = ((Strand *)object)->_lone;
        add(&turns, object, sizeof(Turn));
    }
    along_turns(&turns, NULL);
    return found;
}

/* A class, if it is a compiled one: generic ones have something behind their fields. */
static PyTypeObject *class_of(const char *module, const char *name, size_t size)
{
    PyObject *from = PyImport_ImportModule(module);
    PyObject *found = from ? PyObject_GetAttrString(from, name) : NULL;
    Py_XDECREF(from);
    if (found && PyType_Check(found) &&
        ((PyTypeObject *)found)->tp_basicsize >= (Py_ssize_t)size)
        return (PyTypeObject *)found;
    Py_XDECREF(found);
    return NULL;
}

/* Where the instances of a class have this field; 0 if they have it elsewhere. */
static Py_ssize_t field_of(PyTypeObject *type, const char *name)
{
    PyObject *field = PyObject_GetAttrString((PyObject *)type, name);
    Py_ssize_t at = 0;
    if (field && Py_TYPE(field) == &PyMemberDescr_Type)
        at = ((PyMemberDescrObject *)field)->d_member->offset;
    Py_XDECREF(field);
    return at;
}

/* is_here(): whether all classes are the compiled ones. */
static PyObject *is_here(PyObject *self, PyObject *none)
{
    static int is_known = -1;
    if (is_known < 0) {
        job_type = class_of("headway.core.job", "Job", sizeof(Job));
        line_type = class_of("headway.core.order", "Line", sizeof(Line));
        register_type =
            class_of("headway.core.register", "Register", sizeof(Register));
        strand_type = class_of("headway.core.strand", "Strand", sizeof(Strand));
        tier_type = class_of("headway.core.lane", "TenancyTier", sizeof(TenancyTier));
        timers_type = class_of("headway.core.timers", "TimeBuckets", sizeof(TimeBuckets));
        turn_type = class_of("headway.core.turn", "Turn", sizeof(Turn));
        spec_type = class_of("headway.core.spec", "JobSpec", sizeof(PyObject));
        labels_at = spec_type ? field_of(spec_type, "labels") : 0;
        is_known = job_type && line_type && register_type && strand_type && tier_type &&
                   timers_type && turn_type;
        PyErr_Clear();
    }
    return PyBool_FromLong(is_known);
}

static PyMethodDef methods[] = {
    {"is_here", is_here, METH_NOARGS, NULL},
    {"ends", (PyCFunction)(void (*)(void))ends, METH_FASTCALL, NULL},
    {"arrivals", (PyCFunction)(void (*)(void))arrivals, METH_FASTCALL, NULL},
    {"starts", (PyCFunction)(void (*)(void))starts, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "headway.core.prefetch",
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit_prefetch(void) { return PyModuleDef_Init(&definition); }
