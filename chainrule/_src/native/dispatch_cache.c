/* Calls whose way was learnt: which rows a function of NumPy's applies to its arrays, and with which parameters.

   A function that moves elements or adds them up depends on shapes and static arguments alone. So a call is read into words: what the
   function is, the arguments as they are nested, for each array its shape, strides, dtype and whether it requires grad. For words
   that came before, api/ways.py says which rows Python's function recorded, on what; they are recorded again here, without it. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "eager.h"

#include <stdint.h>

enum { MOST_KNOWN = 2048, MOST_VALUES = 64 };
/* what a word says that comes next */
enum { NONE, ELLIPSIS, TRUTH, WHOLE, FLOATING, WORDS, SLICE, SEQUENCE, NAMED, VARIABLE, AGAIN, CONSTANT };

/* ---- reading a call */

static int add(Call *call, long long word) {
    if (call->n == MOST_WORDS) return 0;
    call->words[call->n++] = word;
    return 1;
}

static int add_two(Call *call, long long first, long long second) { return add(call, first) && add(call, second); }

static int add_text(Call *call, PyObject *text) {
    Py_ssize_t length, at;
    const char *bytes = PyUnicode_AsUTF8AndSize(text, &length);
    if (bytes == NULL) {
        PyErr_Clear();
        return 0;
    }
    if (!add_two(call, WORDS, length)) return 0;
    for (at = 0; at < length; at += 8) {
        long long word = 0;
        memcpy(&word, bytes + at, (size_t)(length - at < 8 ? length - at : 8));
        if (!add(call, word)) return 0;
    }
    return 1;
}

/* Return the type number of a builtin dtype, -1 for any other dtype. Its address is no key: another dtype may get it later. */
static int number_of(PyArray_Descr *dtype) {
    PyArray_Descr *known = PyArray_DescrFromType(dtype->type_num);
    int number = known == dtype ? dtype->type_num : -1;
    Py_XDECREF(known);
    return number;
}

/* Where an array is, how it lies, and what it is of. */
static int add_layout(Call *call, PyArrayObject *x) {
    int i, ndim = PyArray_NDIM(x), dtype = number_of(PyArray_DESCR(x));
    if (dtype < 0 || !add_two(call, dtype, PyArray_FLAGS(x) & (NPY_ARRAY_ALIGNED | NPY_ARRAY_WRITEABLE)) || !add_two(call, ndim, PyArray_BASE(x) != NULL)) return 0;
    for (i = 0; i < ndim; i++) {
        if (!add_two(call, PyArray_DIM(x, i), PyArray_STRIDE(x, i))) return 0;
    }
    return 1;
}

/* A tensor, or a plain array: its number among those of the call. */
static int add_operand(Call *call, PyObject *x) {
    PyObject *raw = x;
    int i, tensor = Py_TYPE(x) == core.tensor;
    if (tensor) {
        PyObject *edge = SLOT(x, core.edge), *view = SLOT(x, core.tensor_view);
        raw = SLOT(x, core.raw);
        if (raw == NULL || edge == NULL || (kind_of(raw) < 0 && (edge != Py_None || !is_constant(raw)))) return 0;
        if (view != NULL && view != Py_None) { /* what is taken from a number is another matter, see api.array.as_arrays */
            PyObject *base = SLOT(view, core.view_base), *whole = base == NULL || Py_TYPE(base) != core.tensor ? NULL : SLOT(base, core.raw);
            if (whole == NULL || !PyArray_CheckExact(whole) || PyArray_NDIM((PyArrayObject *)whole) == 0) return 0;
        }
        call->recorded |= edge != Py_None;
        tensor = 1 + (edge != Py_None) + 2 * (view != NULL && view != Py_None);
    } else if (!is_constant(x)) {
        return 0;
    }
    for (i = 0; i < call->noperands; i++) {
        PyObject *other = call->operands[i];
        if (other == x) return add_two(call, AGAIN, i);
        if (raw == (Py_TYPE(other) == core.tensor ? SLOT(other, core.raw) : other)) return 0;
    }
    if (call->noperands == MOST_OPERANDS_OF_CALL) return 0;
    call->operands[call->noperands++] = Py_NewRef(x);
    return add_two(call, tensor ? VARIABLE : CONSTANT, tensor) && add_layout(call, (PyArrayObject *)raw);
}

static int add_argument(Call *call, PyObject *x, int depth) {
    Py_ssize_t i;
    if (PyLong_CheckExact(x)) {
        int over;
        long long value = PyLong_AsLongLongAndOverflow(x, &over);
        return !over && add_two(call, WHOLE, value);
    }
    if (x == Py_None) return add(call, NONE);
    if (PyTuple_CheckExact(x) || PyList_CheckExact(x)) {
        Py_ssize_t n = PySequence_Fast_GET_SIZE(x);
        if (depth == 0 || !add_two(call, SEQUENCE, 2 * n + PyList_CheckExact(x))) return 0;
        for (i = 0; i < n; i++) {
            if (!add_argument(call, PySequence_Fast_GET_ITEM(x, i), depth - 1)) return 0;
        }
        return 1;
    }
    if (PyFloat_CheckExact(x)) {
        double value = PyFloat_AS_DOUBLE(x);
        long long word;
        memcpy(&word, &value, sizeof(word));
        return add_two(call, FLOATING, word);
    }
    if (PyBool_Check(x)) return add_two(call, TRUTH, x == Py_True);
    if (PyUnicode_CheckExact(x)) return add_text(call, x);
    if (x == Py_Ellipsis) return add(call, ELLIPSIS);
    if (PySlice_Check(x)) {
        PySliceObject *slice = (PySliceObject *)x;
        return depth > 0 && add(call, SLICE) && add_argument(call, slice->start, 0) && add_argument(call, slice->stop, 0) && add_argument(call, slice->step, 0);
    }
    return Py_TYPE(x) != core.tensor && add_operand(call, opened(x)); /* with a Tensor among Arrays the result is a Tensor */
}

int read_call(Call *call, PyObject *about, PyObject *const *args, Py_ssize_t nargs, PyObject *named) {
    Py_ssize_t i, at = 0, count = named != NULL && PyTuple_Check(named) ? PyTuple_GET_SIZE(named) : 0;
    PyObject *name, *value;
    call->about = about;
    call->n = call->noperands = call->recorded = 0;
    if (!add_two(call, (long long)(intptr_t)about, nargs)) return 0;
    for (i = 0; i < nargs; i++) {
        if (!add_argument(call, args[i], 3)) return 0;
    }
    for (i = 0; i < count; i++) {
        if (!add(call, NAMED) || !add_text(call, PyTuple_GET_ITEM(named, i)) || !add_argument(call, args[nargs + i], 3)) return 0;
    }
    if (named != NULL && PyDict_CheckExact(named)) {
        while (PyDict_Next(named, &at, &name, &value)) {
            if (!PyUnicode_CheckExact(name) || !add(call, NAMED) || !add_text(call, name) || !add_argument(call, value, 3)) return 0;
        }
    }
    return call->recorded;
}

void drop_call(Call *call) {
    while (call->noperands > 0) Py_DECREF(call->operands[--call->noperands]);
}

int is_same_call(const Call *x, const Call *y) { return x->n == y->n && memcmp(x->words, y->words, sizeof(long long) * (size_t)x->n) == 0; }

/* ---- what is known */

typedef struct {
    uint64_t hash;
    int n;
    long long *words;
    PyObject *about, *way; /* NULL: such a call came once; None: Python has to do it */
} Known;

struct Ways {
    Known *table; /* open addressing, at most half of it taken; NULL while it is empty */
    int count, size;
};

static uint64_t hash_of(const Call *call) {
    uint64_t hash = 0x9E3779B97F4A7C15u;
    int i;
    for (i = 0; i < call->n; i++) {
        hash ^= (uint64_t)call->words[i];
        hash *= 0x9FB21C651E98DF25u;
        hash ^= hash >> 32;
    }
    return hash;
}

Ways *new_ways(void) {
    Ways *ways = PyMem_Calloc(1, sizeof(Ways));
    if (ways == NULL) PyErr_NoMemory();
    return ways;
}

static void free_table(Known *table, int size) {
    int i;
    for (i = 0; i < size; i++) {
        PyMem_Free(table[i].words);
        Py_XDECREF(table[i].about);
        Py_XDECREF(table[i].way);
    }
    PyMem_Free(table);
}

static void forget(Ways *ways) {
    Known *table = ways->table;
    int size = ways->size;
    *ways = (Ways){NULL, 0, 0}; /* before what is let go of, which may run other code */
    free_table(table, size);
}

void clear_ways(Ways *ways) {
    if (ways == NULL) return;
    forget(ways);
    PyMem_Free(ways);
}

int visit_ways(const Ways *ways, visitproc visit, void *arg) {
    int i;
    for (i = 0; ways != NULL && i < ways->size; i++) {
        Py_VISIT(ways->table[i].about);
        Py_VISIT(ways->table[i].way);
    }
    return 0;
}

/* The place of a call, taken or free; NULL in an empty table. */
static Known *place_of(const Ways *ways, const Call *call, uint64_t hash) {
    size_t last = (size_t)ways->size - 1, at = (size_t)hash & last;
    for (; ways->size > 0; at = (at + 1) & last) {
        Known *known = &ways->table[at];
        if (known->words == NULL) return known;
        if (known->hash == hash && known->n == call->n && memcmp(known->words, call->words, sizeof(long long) * (size_t)call->n) == 0) return known;
    }
    return NULL;
}

/* Twice as many places. */
static int grow(Ways *ways) {
    int size = ways->size > 0 ? 2 * ways->size : 16, i;
    Known *table = PyMem_Calloc((size_t)size, sizeof(Known));
    if (table == NULL) return 0;
    for (i = 0; i < ways->size; i++) {
        size_t at = (size_t)ways->table[i].hash & ((size_t)size - 1);
        if (ways->table[i].words == NULL) continue;
        while (table[at].words != NULL) at = (at + 1) & ((size_t)size - 1);
        table[at] = ways->table[i];
    }
    PyMem_Free(ways->table);
    ways->table = table;
    ways->size = size;
    return 1;
}

int find_way(Ways *ways, const Call *call, PyObject **way) {
    uint64_t hash = hash_of(call);
    Known *known = place_of(ways, call, hash);
    long long *words;
    if (known != NULL && known->words != NULL) {
        *way = Py_XNewRef(known->way);
        return known->way == NULL;
    }
    *way = NULL;
    if (ways->count == MOST_KNOWN) forget(ways);
    if (2 * ways->count >= ways->size && !grow(ways)) return 0;
    known = place_of(ways, call, hash);
    if (known->words != NULL) return 0; /* a destructor of a forgotten entry made the same call */
    words = PyMem_Malloc(sizeof(long long) * (size_t)call->n);
    if (words == NULL) return 0;
    memcpy(words, call->words, sizeof(long long) * (size_t)call->n);
    *known = (Known){hash, call->n, words, Py_NewRef(call->about), NULL};
    ways->count++;
    return 0;
}

void keep_way(Ways *ways, const Call *call, PyObject *way) {
    Known *known = place_of(ways, call, hash_of(call));
    if (known != NULL && known->words != NULL && known->way == NULL) known->way = Py_NewRef(way);
}

/* ---- going a way */

/* Whether an object is a way from n operands. */
int is_way(PyObject *way, Py_ssize_t n) {
    PyObject *steps;
    Py_ssize_t i, k;
    if (!PyTuple_CheckExact(way) || PyTuple_GET_SIZE(way) != 3 || !PyUnicode_CheckExact(PyTuple_GET_ITEM(way, 2)) || !PyTuple_CheckExact(PyTuple_GET_ITEM(way, 0))) return 0;
    steps = PyTuple_GET_ITEM(way, 0);
    for (i = 0; i < PyTuple_GET_SIZE(steps); i++) {
        PyObject *step = PyTuple_GET_ITEM(steps, i), *from;
        if (!PyTuple_CheckExact(step) || PyTuple_GET_SIZE(step) != 3 || !PyObject_TypeCheck(PyTuple_GET_ITEM(step, 0), core.primitive) || !PyDict_CheckExact(PyTuple_GET_ITEM(step, 1)) || !PyTuple_CheckExact(PyTuple_GET_ITEM(step, 2))) return 0;
        from = PyTuple_GET_ITEM(step, 2);
        for (k = 0; k < PyTuple_GET_SIZE(from); k++) {
            PyObject *ref = PyTuple_GET_ITEM(from, k);
            if (PyLong_CheckExact(ref) ? PyLong_AsLong(ref) < 0 || PyLong_AsLong(ref) >= n + i : !PyTuple_CheckExact(ref) || PyTuple_GET_SIZE(ref) != 1) return 0;
        }
    }
    return 1;
}

/* way: (((row, parameters, operands), ...), whether the last result is a number of NumPy's (a value and no view), the origin of its view).
   An operand is the number of a value (the call's own, then each result), or (a number or an array,). */
PyObject *follow(PyObject *way, PyObject *const *operands, int n) {
    PyObject *steps = PyTuple_GET_ITEM(way, 0), *values[MOST_VALUES], *args[MOST_OPERANDS_OF_CALL], *made = NULL;
    Py_ssize_t i, k, count = PyTuple_GET_SIZE(steps);
    int have = n;
    if (n + count > MOST_VALUES || count == 0) return NULL;
    Py_INCREF(way);
    for (i = 0; i < n; i++) values[i] = Py_NewRef(operands[i]);
    for (i = 0; i < count; i++) {
        PyObject *step = PyTuple_GET_ITEM(steps, i), *from = PyTuple_GET_ITEM(step, 2);
        Py_ssize_t nargs = PyTuple_GET_SIZE(from);
        made = NULL;
        for (k = 0; k < nargs && k < MOST_OPERANDS_OF_CALL; k++) {
            PyObject *ref = PyTuple_GET_ITEM(from, k);
            args[k] = PyLong_CheckExact(ref) ? values[PyLong_AsLong(ref)] : PyTuple_GET_ITEM(ref, 0);
        }
        if (nargs <= MOST_OPERANDS_OF_CALL) made = record(PyTuple_GET_ITEM(step, 0), args, nargs, PyTuple_GET_ITEM(step, 1), NULL, RECORDS, here);
        if (made == NULL) break;
        values[have++] = made;
    }
    if (made != NULL && PyTuple_GET_ITEM(way, 1) == Py_True) {
        PyObject *raw = Py_NewRef(SLOT(made, core.raw)), *number = PyArray_NewCopy((PyArrayObject *)raw, NPY_CORDER);
        Py_DECREF(raw);
        if (number == NULL) {
            if (!PyErr_Occurred()) PyErr_NoMemory();
            made = NULL;
        } else {
            Py_SETREF(SLOT(made, core.raw), number);
            if (SLOT(made, core.tensor_view) != NULL) Py_SETREF(SLOT(made, core.tensor_view), Py_NewRef(Py_None));
        }
    }
    if (made != NULL && PyUnicode_GET_LENGTH(PyTuple_GET_ITEM(way, 2)) > 0) {
        PyObject *view = SLOT(made, core.tensor_view);
        if (view != NULL && view != Py_None) Py_XSETREF(SLOT(view, core.view_origin), Py_NewRef(PyTuple_GET_ITEM(way, 2)));
    }
    Py_XINCREF(made);
    while (have > 0) Py_DECREF(values[--have]);
    Py_DECREF(way);
    if (made == NULL && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_ValueError)) PyErr_Clear(); /* Python has the words */
    return made;
}
