/* Release the memory of recorded values that the traced program no longer uses.

   A trace keeps a Var for each array, and the passes of the compiler read the layout and the address of the array. They read the values of
   inputs, constants and outputs, and of arrays that cross a boundary of the trace (`CapturedArrays.boundaries`). For any other value, an
   array without memory of its own replaces the recorded array. It has the same layout, and an address in reserved address space that no other
   array of the trace has. Views of the array become views of its replacement. `note_new_value` does so each time after the program has
   allocated some megabytes, so a first call of a loop over large arrays needs little more memory than eager code.

   A value is unused if nothing refers to its Var but calls, and nothing refers to its memory but arrays of unused Vars. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "trace.h"

#if !defined(_WIN32)
#include <sys/mman.h>
#endif
#if defined(__GLIBC__)
#include <malloc.h>
#endif

enum { REGION_BYTES = 64 << 20, RESERVED_ALIGNMENT = 64, MIN_NEW_BYTES = 8 << 20 };
static npy_int64 min_array_bytes = 1024, min_new_bytes = MIN_NEW_BYTES; /* see set_release_sizes */

/* ---- reserved address space: reads give zeros */

typedef struct {
    PyObject_HEAD
    char *begin;
    size_t size, used;
} ReservedMemory;

static void free_reserved(PyObject *self) {
#if !defined(_WIN32)
    ReservedMemory *memory = (ReservedMemory *)self;
    munmap(memory->begin, memory->size);
#endif
    Py_TYPE(self)->tp_free(self);
}

static PyTypeObject reserved_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "chainrule._src.native._loops.ReservedMemory",
    .tp_doc = "Address space of arrays whose values were released.",
    .tp_basicsize = sizeof(ReservedMemory),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = free_reserved,
};

int add_reserved_memory(PyObject *module) { return PyType_Ready(&reserved_type) < 0 ? -1 : PyModule_AddObjectRef(module, "ReservedMemory", (PyObject *)&reserved_type); }

/* Reserve address space. NULL without an error if that is not possible: on Windows, or if the process may not have so much. */
static ReservedMemory *reserve(size_t size) {
#if defined(_WIN32)
    (void)size;
    return NULL;
#else
    ReservedMemory *memory;
    char *begin = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED) return NULL;
    memory = PyObject_New(ReservedMemory, &reserved_type);
    if (memory == NULL) {
        PyErr_Clear();
        munmap(begin, size);
        return NULL;
    }
    memory->begin = begin;
    memory->size = size;
    memory->used = 0;
    return memory;
#endif
}

/* ---- the uses of Vars in the calls so far */

typedef struct {
    npy_int32 uses, first, last; /* how often calls refer to a Var; the calls that compute it (-1: none) and last read it */
    int is_kept;                 /* an argument or result of a call with side effects, which only the program itself may repeat */
} Uses;

typedef struct {
    Py_ssize_t done;     /* the number of calls whose Vars were counted */
    PyObject *last_call; /* the last one of them */
    Uses *uses;          /* by the number of a Var */
    npy_int64 numbers;
    PyObject **candidates; /* computed Vars with large arrays that are not released; owned */
    Py_ssize_t count, capacity;
    PyObject *outside; /* a set of the addresses of arrays from outside that own memory */
    ReservedMemory *reserved;
} State;

static npy_int64 new_bytes, next_run = MIN_NEW_BYTES; /* allocated since the last run, and when the next one is due */
static const char *const capsule_name = "chainrule.release_state";

static void clear_state(State *state) {
    while (state->count > 0) Py_DECREF(state->candidates[--state->count]);
    PyMem_Free(state->candidates);
    PyMem_Free(state->uses);
    Py_CLEAR(state->outside);
    Py_CLEAR(state->last_call);
    Py_CLEAR(state->reserved);
    memset(state, 0, sizeof *state);
}

static void free_state(PyObject *capsule) {
    State *state = PyCapsule_GetPointer(capsule, capsule_name);
    clear_state(state);
    PyMem_Free(state);
}

static int is_started(PyObject *recorder) { return SLOT(recorder, recorder_release_state) != NULL && PyCapsule_IsValid(SLOT(recorder, recorder_release_state), capsule_name); }

/* The state of a recorder, whose slot holds it; NULL with an error */
static State *state_of(PyObject *recorder) {
    PyObject *capsule;
    State *state;
    if (is_started(recorder)) return PyCapsule_GetPointer(SLOT(recorder, recorder_release_state), capsule_name);
    state = PyMem_Calloc(1, sizeof *state);
    capsule = state == NULL ? PyErr_NoMemory() : PyCapsule_New(state, capsule_name, free_state);
    if (capsule == NULL) {
        PyMem_Free(state);
        return NULL;
    }
    Py_XSETREF(SLOT(recorder, recorder_release_state), capsule);
    return state;
}

static PyObject *owner_of(PyObject *array) {
    while (PyArray_BASE((PyArrayObject *)array) != NULL && PyArray_Check(PyArray_BASE((PyArrayObject *)array))) array = PyArray_BASE((PyArrayObject *)array);
    return array;
}

static size_t hash_of(PyObject *x) { return ((size_t)x >> 4) * 0x9E3779B97F4A7C15ull >> 20; }

/* Whether an array from outside owns its memory: 1, 0, -1 error. */
static int is_from_outside(const State *state, PyObject *owner) {
    PyObject *address = state->outside == NULL ? NULL : PyLong_FromVoidPtr(owner);
    int found = address == NULL ? (state->outside == NULL ? 0 : -1) : PySet_Contains(state->outside, address);
    Py_XDECREF(address);
    return found;
}

static int add_outside(State *state, PyObject *owner) {
    PyObject *address = PyLong_FromVoidPtr(owner);
    int done = -1;
    if (state->outside == NULL) state->outside = PySet_New(NULL);
    if (state->outside != NULL && address != NULL) done = PySet_Add(state->outside, address);
    Py_XDECREF(address);
    return done;
}

/* The array of a Var, or NULL; its number */
static PyObject *array_of_var(PyObject *var) { return SLOT(var, var_array) != NULL && PyArray_CheckExact(SLOT(var, var_array)) ? SLOT(var, var_array) : NULL; }
static npy_int64 number_of(PyObject *var) { return PyLong_AsLongLong(SLOT(var, var_number)); }

static Uses *uses_of(State *state, PyObject *var) {
    npy_int64 number = number_of(var), n;
    if (number < 0 || number > 1 << 30) {
        PyErr_SetString(PyExc_ValueError, "a Var of a trace has no number");
        return NULL;
    }
    if (number >= state->numbers) {
        Uses *uses;
        n = 2 * number + 1024;
        uses = PyMem_Realloc(state->uses, (size_t)n * sizeof *uses);
        if (uses == NULL) return (Uses *)PyErr_NoMemory();
        state->uses = uses;
        for (; state->numbers < n; state->numbers++) uses[state->numbers] = (Uses){0, -1, -1, 0};
    }
    return state->uses + number;
}

typedef struct {
    State *state;
    npy_int32 call;
    int is_kept;
} Reader; /* the call that reads a Var */

static int note_use(PyObject *var, void *context) {
    const Reader *reader = context;
    Uses *uses = uses_of(reader->state, var);
    if (uses == NULL) return -1;
    uses->uses++;
    uses->last = reader->call;
    uses->is_kept |= reader->is_kept;
    return uses->first < 0 && array_of_var(var) != NULL ? add_outside(reader->state, owner_of(array_of_var(var))) : 0;
}

static int note_result(State *state, PyObject *var, npy_int32 call, int is_kept) {
    Uses *uses = Py_TYPE(var) == var_type ? uses_of(state, var) : NULL;
    PyObject *array, *owner;
    int outside;
    if (uses == NULL) return -1;
    uses->uses++;
    uses->first = uses->last = call;
    uses->is_kept = is_kept;
    array = array_of_var(var);
    owner = array == NULL ? NULL : owner_of(array);
    if (owner == NULL || PyArray_NBYTES((PyArrayObject *)owner) < min_array_bytes) return 0;
    outside = is_from_outside(state, owner);
    if (outside != 0) return outside < 0 ? -1 : 0;
    if (state->count == state->capacity) {
        Py_ssize_t capacity = 2 * state->capacity + 64;
        PyObject **candidates = PyMem_Realloc(state->candidates, (size_t)capacity * sizeof *candidates);
        if (candidates == NULL) return PyErr_NoMemory(), -1;
        state->candidates = candidates;
        state->capacity = capacity;
    }
    state->candidates[state->count++] = Py_NewRef(var);
    return 0;
}

/* Count the Vars of the calls that were appended since the last run. */
static int note_calls(State *state, PyObject *calls) {
    Py_ssize_t i, k, n = PyList_GET_SIZE(calls);
    if (state->done > 0 && (state->done > n || PyList_GET_ITEM(calls, state->done - 1) != state->last_call)) clear_state(state); /* calls were removed */
    for (i = state->done; i < n; i++) {
        PyObject *call = PyList_GET_ITEM(calls, i), *results = SLOT(call, call_results);
        Reader reader = {state, (npy_int32)i, SLOT(call, call_pure) != Py_True};
        if (results == NULL || !PyTuple_CheckExact(results)) break; /* the call that is being appended */
        if (visit_vars(SLOT(call, call_args), note_use, &reader) < 0 || visit_vars(SLOT(call, call_kwargs), note_use, &reader) < 0) return -1;
        for (k = 0; k < PyTuple_GET_SIZE(results); k++) {
            if (note_result(state, PyTuple_GET_ITEM(results, k), reader.call, reader.is_kept) < 0) return -1;
        }
        state->done = i + 1;
        Py_XSETREF(state->last_call, Py_NewRef(call));
    }
    return 0;
}

/* ---- release */

/* The memory of an array that owns it, and the unused Vars with arrays in it */
typedef struct {
    PyObject *owner, *replacement;
    Py_ssize_t references; /* from these arrays and Vars */
    npy_int32 first, last; /* the first call that computes, and the last one that reads, one of them */
    int is_unused, is_kept;
} Memory;

typedef struct {
    Memory *table;
    size_t size;
} Memories;

static Memory *memory_of(const Memories *memories, PyObject *owner) {
    size_t at;
    for (at = hash_of(owner) & (memories->size - 1); memories->table[at].owner != NULL && memories->table[at].owner != owner; at = (at + 1) & (memories->size - 1)) {}
    return memories->table + at;
}

static int is_unused_var(const State *state, PyObject *var) {
    const Uses *uses = state->uses + number_of(var);
    return !uses->is_kept && Py_REFCNT(var) == uses->uses + 1; /* and one reference from the candidates */
}

static void note_unused(const State *state, const Memories *memories, PyObject *var) {
    PyObject *array = array_of_var(var), *owner = array == NULL ? NULL : owner_of(array), *base;
    const Uses *uses = state->uses + number_of(var);
    Memory *memory = owner == NULL ? NULL : memory_of(memories, owner);
    if (memory == NULL) return;
    if (memory->owner == NULL) *memory = (Memory){owner, NULL, 0, uses->first, uses->last, 1, 0};
    memory->references++;
    if (uses->first < memory->first) memory->first = uses->first;
    if (uses->last > memory->last) memory->last = uses->last;
    for (base = array; base != owner; base = PyArray_BASE((PyArrayObject *)base)) memory->is_unused = memory->is_unused && Py_REFCNT(base) == 1;
}

/* Whether a boundary is after the call `first` and not after the call `last`. */
static int crosses(const npy_int64 *boundaries, npy_intp n, npy_int32 first, npy_int32 last) {
    npy_intp low = 0, high = n;
    while (low < high) {
        npy_intp middle = (low + high) / 2;
        if (boundaries[middle] <= first) low = middle + 1;
        else high = middle;
    }
    return low < n && boundaries[low] <= last;
}

static void decide(Memory *memory, const npy_int64 *boundaries, npy_intp n) {
    PyArrayObject *owner = (PyArrayObject *)memory->owner;
    memory->is_unused = memory->is_unused && Py_REFCNT(owner) == memory->references && PyArray_BASE(owner) == NULL && PyArray_CHKFLAGS(owner, NPY_ARRAY_OWNDATA) && !PyDataType_REFCHK(PyArray_DESCR(owner)) && ((PyArrayObject_fields *)owner)->weakreflist == NULL;
    memory->is_kept = memory->is_unused && crosses(boundaries, n, memory->first, memory->last);
}

/* A new array with the layout of an array, at an address in the memory of `base` */
static PyObject *array_like(PyObject *array, char *data, PyObject *base) {
    PyArrayObject *x = (PyArrayObject *)array;
    PyObject *made = PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)Py_NewRef((PyObject *)PyArray_DESCR(x)), PyArray_NDIM(x), PyArray_DIMS(x), PyArray_STRIDES(x), data, PyArray_FLAGS(x) & NPY_ARRAY_WRITEABLE, NULL);
    if (made != NULL && PyArray_SetBaseObject((PyArrayObject *)made, Py_NewRef(base)) < 0) Py_CLEAR(made);
    return made;
}

/* Replace the array of a Var: 1, 0 if there is no address space, -1 error. */
static int replace(State *state, Memory *memory, PyObject *var) {
    PyObject *array = array_of_var(var), *owner = memory->owner, *made;
    size_t nbytes = (size_t)PyArray_NBYTES((PyArrayObject *)owner), begin;
    if (memory->replacement == NULL) {
        begin = state->reserved == NULL ? 0 : (state->reserved->used + RESERVED_ALIGNMENT - 1) & ~(size_t)(RESERVED_ALIGNMENT - 1);
        if (state->reserved == NULL || begin + nbytes > state->reserved->size) {
            ReservedMemory *reserved = reserve(nbytes > REGION_BYTES ? nbytes : REGION_BYTES);
            if (reserved == NULL) {
                memory->is_unused = 0; /* keep all arrays in it */
                return 0;
            }
            Py_XSETREF(state->reserved, reserved);
            begin = 0;
        }
        memory->replacement = array_like(owner, state->reserved->begin + begin, (PyObject *)state->reserved);
        if (memory->replacement == NULL) return -1;
        state->reserved->used = begin + nbytes;
    }
    if (array == owner) made = Py_NewRef(memory->replacement);
    else made = array_like(array, PyArray_BYTES((PyArrayObject *)memory->replacement) + (PyArray_BYTES((PyArrayObject *)array) - PyArray_BYTES((PyArrayObject *)owner)), memory->replacement);
    if (made == NULL) return -1;
    Py_SETREF(SLOT(var, var_array), made);
    return 1;
}

/* Release the memory of unused candidates. Remove these candidates, and the unused candidates that cross a boundary. */
static int release_candidates(State *state, const npy_int64 *boundaries, npy_intp n) {
    Memories memories = {NULL, 64};
    Py_ssize_t i, kept = 0;
    npy_int64 bytes = 0;
    size_t at;
    int failed = 0;
    while (memories.size < 2 * (size_t)state->count) memories.size *= 2;
    memories.table = PyMem_Calloc(memories.size, sizeof *memories.table);
    if (memories.table == NULL) return PyErr_NoMemory(), -1;
    for (i = 0; i < state->count; i++) {
        if (is_unused_var(state, state->candidates[i])) note_unused(state, &memories, state->candidates[i]);
    }
    for (at = 0; at < memories.size; at++) {
        if (memories.table[at].owner == NULL) continue;
        decide(memories.table + at, boundaries, n);
        Py_INCREF(memories.table[at].owner);
    }
    for (i = 0; i < state->count; i++) {
        PyObject *var = state->candidates[i], *array = array_of_var(var);
        Memory *memory = array == NULL ? NULL : memory_of(&memories, owner_of(array));
        int is_done = array == NULL || (!failed && memory->owner != NULL && memory->is_unused);
        if (is_done && array != NULL && !memory->is_kept) {
            int replaced = replace(state, memory, var);
            failed = replaced < 0;
            is_done = replaced > 0;
        }
        if (is_done) {
            Py_DECREF(var);
        } else {
            state->candidates[kept++] = var;
            if (PyArray_BASE((PyArrayObject *)array) == NULL) bytes += PyArray_NBYTES((PyArrayObject *)array);
        }
    }
    state->count = kept;
    for (at = 0; at < memories.size; at++) {
        Py_XDECREF(memories.table[at].owner);
        Py_XDECREF(memories.table[at].replacement);
    }
    PyMem_Free(memories.table);
    next_run = bytes / 4 > min_new_bytes ? bytes / 4 : min_new_bytes;
    return failed ? -1 : 0;
}

ReleaseSizes set_release_sizes(ReleaseSizes sizes) {
    ReleaseSizes before = {min_array_bytes, min_new_bytes};
    min_array_bytes = sizes.array_bytes;
    min_new_bytes = next_run = sizes.bytes;
    new_bytes = 0;
    return before;
}

/* The bytes that were allocated for a new value: 0 if it is in the memory of another array, or small. */
static npy_int64 new_memory(PyObject *array) {
    PyObject *owner = PyArray_BASE((PyArrayObject *)array);
    if (owner == NULL) owner = array;
    else if (!PyArray_Check(owner) || Py_REFCNT(owner) > 1) return 0;
    return PyArray_NBYTES((PyArrayObject *)owner) >= min_array_bytes ? PyArray_NBYTES((PyArrayObject *)owner) : 0;
}

static int release(PyObject *recorder) {
    static PyObject *boundaries_name;
    PyObject *calls, *boundaries, *array = NULL;
    State *state;
    int done = -1;
    new_bytes = 0;
    if (boundaries_name == NULL && (boundaries_name = PyUnicode_InternFromString("boundaries")) == NULL) return -1;
    calls = SLOT(recorder, recorder_calls);
    if (calls == NULL || !PyList_CheckExact(calls)) return 0;
    boundaries = PyObject_CallMethodNoArgs(recorder, boundaries_name);
    if (boundaries != NULL) array = PyArray_FROMANY(boundaries, NPY_INT64, 1, 1, NPY_ARRAY_CARRAY);
    Py_XDECREF(boundaries);
    state = array == NULL ? NULL : state_of(recorder);
    if (state != NULL) {
        Py_INCREF(calls);
        done = note_calls(state, calls) < 0 ? -1 : release_candidates(state, PyArray_DATA((PyArrayObject *)array), PyArray_SIZE((PyArrayObject *)array));
        Py_DECREF(calls);
    }
    Py_XDECREF(array);
    return done;
}

int note_new_value(PyObject *recorder, PyObject *array) {
    new_bytes += new_memory(array);
    return new_bytes < next_run ? 0 : release(recorder);
}

int release_values(PyObject *recorder) {
    int done = new_bytes < next_run && !is_started(recorder) ? 0 : release(recorder);
#if defined(__GLIBC__)
    if (is_started(recorder)) malloc_trim(0); /* the plan is about to allocate its own memory */
#endif
    return done;
}
