/* The dispatch cache: which ops a function applies to its operands, with which parameters.

   The functions in this cache choose ops by shapes and static arguments alone. read_call_key() encodes a call as 64-bit words: the function, the
   nested arguments, and for each tensor or array its shape, strides, dtype and whether operations on it are recorded. At the first or second
   call with a key, api/dispatch_cache.py makes the cache entry: the list of the ops that the Python function recorded. Later calls replay() the
   entry without Python. A full cache is emptied. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "eager.h"

#include <stdint.h>

enum { MAX_ENTRIES = 2048, MAX_VALUES = 64 };
/* tags: the type of the argument that the next words encode */
enum { TAG_NONE, TAG_ELLIPSIS, TAG_BOOL, TAG_INT, TAG_FLOAT, TAG_STR, TAG_SLICE, TAG_SEQUENCE, TAG_KEYWORD, TAG_TENSOR, TAG_REPEATED, TAG_ARRAY };
enum { NO_OPERANDS, TENSORS, ARRAYS }; /* CallKey.operand_type: the tensors and arrays that an argument may contain; TENSORS: contiguous, of floats */

/* ---- reading a call */

static int add_word(CallKey *key, long long word) {
    if (key->n == MAX_KEY_WORDS) return 0;
    key->words[key->n++] = word;
    return 1;
}

static int add_words(CallKey *key, long long first, long long second) { return add_word(key, first) && add_word(key, second); }

static int add_text(CallKey *key, PyObject *text) {
    Py_ssize_t length, at;
    const char *bytes = PyUnicode_AsUTF8AndSize(text, &length);
    if (bytes == NULL) {
        PyErr_Clear();
        return 0;
    }
    if (!add_words(key, TAG_STR, length)) return 0;
    for (at = 0; at < length; at += 8) {
        long long word = 0;
        memcpy(&word, bytes + at, (size_t)(length - at < 8 ? length - at : 8));
        if (!add_word(key, word)) return 0;
    }
    return 1;
}

/* Return the type number of a builtin dtype, -1 for any other dtype. The address of a dtype is no key: another dtype may reuse it. */
static int dtype_number(PyArray_Descr *dtype) {
    PyArray_Descr *slot = PyArray_DescrFromType(dtype->type_num);
    int number = slot == dtype ? dtype->type_num : -1;
    Py_XDECREF(slot);
    return number;
}

/* Encode dtype, flags, shape and strides. */
static int add_layout(CallKey *key, PyArrayObject *x) {
    int i, ndim = PyArray_NDIM(x), dtype = dtype_number(PyArray_DESCR(x));
    if (dtype < 0 || !add_words(key, dtype, PyArray_FLAGS(x) & (NPY_ARRAY_ALIGNED | NPY_ARRAY_WRITEABLE)) || !add_words(key, ndim, PyArray_BASE(x) != NULL)) return 0;
    for (i = 0; i < ndim; i++) {
        if (!add_words(key, PyArray_DIM(x, i), PyArray_STRIDE(x, i))) return 0;
    }
    return 1;
}

/* Whether a tensor may be an operand of a key that has this array. */
static int is_operand(const CallKey *key, PyObject *tensor, PyObject *raw) {
    PyObject *edge = SLOT(tensor, core.edge), *view = SLOT(tensor, core.tensor_view), *base, *base_array;
    if (raw == NULL || edge == NULL) return 0;
    if (key->operand_type == TENSORS) return kind_of(raw) >= 0 && PyArray_IS_C_CONTIGUOUS((PyArrayObject *)raw);
    if (kind_of(raw) < 0 && (edge != Py_None || !is_constant(raw))) return 0;
    if (view == NULL || view == Py_None) return 1;
    base = SLOT(view, core.view_base); /* views of 0-d arrays differ: see api.array.as_arrays */
    base_array = base == NULL || Py_TYPE(base) != core.tensor ? NULL : array_of_tensor(base, key->mode);
    return base_array != NULL && PyArray_NDIM((PyArrayObject *)base_array) > 0;
}

/* Encode a tensor or plain array, and append it to the operands of the key. */
static int add_operand(CallKey *key, PyObject *x) {
    PyObject *raw = x;
    int i, tensor = Py_TYPE(x) == core.tensor; /* the word of an operand. Plain array: 0; tensor: 1, plus 1 if operations on it are recorded, plus 2 if it is a view */
    if (tensor) {
        raw = array_of_tensor(x, key->mode);
        if (!is_operand(key, x, raw)) return 0;
        if (SLOT(x, core.edge) != Py_None && (key->mode == RECORDS || key->mode == TRACES)) key->recorded = tensor = 2;
        if (SLOT(x, core.tensor_view) != NULL && SLOT(x, core.tensor_view) != Py_None) tensor += 2;
    } else if (!is_constant(x)) {
        return 0;
    }
    for (i = 0; i < key->noperands; i++) {
        PyObject *other = key->operands[i];
        if (other == x) return add_words(key, TAG_REPEATED, i);
        if (raw == (Py_TYPE(other) == core.tensor ? array_of_tensor(other, key->mode) : other)) return 0;
    }
    if (key->noperands == MAX_CALL_OPERANDS) return 0;
    key->operands[key->noperands++] = Py_NewRef(x);
    return add_words(key, tensor ? TAG_TENSOR : TAG_ARRAY, tensor) && add_layout(key, (PyArrayObject *)raw);
}

static int add_argument(CallKey *key, PyObject *x, int depth) {
    Py_ssize_t i;
    if (PyLong_CheckExact(x)) {
        int over;
        long long value = PyLong_AsLongLongAndOverflow(x, &over);
        return !over && add_words(key, TAG_INT, value);
    }
    if (x == Py_None) return add_word(key, TAG_NONE);
    if (PyTuple_CheckExact(x) || PyList_CheckExact(x)) {
        Py_ssize_t n = PySequence_Fast_GET_SIZE(x);
        if (depth == 0 || !add_words(key, TAG_SEQUENCE, 2 * n + PyList_CheckExact(x))) return 0;
        for (i = 0; i < n; i++) {
            if (!add_argument(key, PySequence_Fast_GET_ITEM(x, i), depth - 1)) return 0;
        }
        return 1;
    }
    if (PyFloat_CheckExact(x)) {
        double value = PyFloat_AS_DOUBLE(x);
        long long word;
        memcpy(&word, &value, sizeof(word));
        return add_words(key, TAG_FLOAT, word);
    }
    if (PyBool_Check(x)) return add_words(key, TAG_BOOL, x == Py_True);
    if (PyUnicode_CheckExact(x)) return add_text(key, x);
    if (x == Py_Ellipsis) return add_word(key, TAG_ELLIPSIS);
    if (PySlice_Check(x)) {
        PySliceObject *slice = (PySliceObject *)x;
        return depth > 0 && add_word(key, TAG_SLICE) && add_argument(key, slice->start, 0) && add_argument(key, slice->stop, 0) && add_argument(key, slice->step, 0);
    }
    if (key->operand_type == ARRAYS) return Py_TYPE(x) != core.tensor && add_operand(key, unwrap_array(x)); /* a Tensor among Arrays changes the type of the result */
    return key->operand_type == TENSORS && Py_TYPE(x) == core.tensor && add_operand(key, x);
}

int read_call_key(CallKey *key, PyObject *function, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords, int arrays, int mode) {
    Py_ssize_t i, at = 0, count = keywords != NULL && PyTuple_Check(keywords) ? PyTuple_GET_SIZE(keywords) : 0;
    PyObject *name, *value;
    key->function = function;
    key->mode = mode;
    key->n = key->noperands = key->recorded = 0;
    key->operand_type = arrays ? ARRAYS : TENSORS;
    if (!add_words(key, (long long)(intptr_t)function, nargs)) return 0;
    for (i = 0; i < nargs; i++) {
        if (!add_argument(key, args[i], 3)) return 0;
        if (!arrays) key->operand_type = NO_OPERANDS;
    }
    for (i = 0; i < count; i++) {
        if (!add_word(key, TAG_KEYWORD) || !add_text(key, PyTuple_GET_ITEM(keywords, i)) || !add_argument(key, args[nargs + i], 3)) return 0;
    }
    if (keywords != NULL && PyDict_CheckExact(keywords)) {
        while (PyDict_Next(keywords, &at, &name, &value)) {
            if (!PyUnicode_CheckExact(name) || !add_word(key, TAG_KEYWORD) || !add_text(key, name) || !add_argument(key, value, 3)) return 0;
        }
    }
    return arrays || mode == TRACES ? key->recorded : key->noperands > 0;
}

void drop_call_key(CallKey *key) {
    while (key->noperands > 0) Py_DECREF(key->operands[--key->noperands]);
}

int is_same_key(const CallKey *x, const CallKey *y) { return x->n == y->n && memcmp(x->words, y->words, sizeof(long long) * (size_t)x->n) == 0; }

/* ---- the hash table */

typedef struct {
    uint64_t hash;
    int n;
    long long *words;
    PyObject *function, *entry; /* entry: NULL after the first call with the key; None if Python must handle such calls */
} CacheSlot;

struct DispatchCache {
    CacheSlot *table; /* open addressing, at most half full; NULL while the cache is empty */
    int count, size;
};

static uint64_t hash_of(const CallKey *key) {
    uint64_t hash = 0x9E3779B97F4A7C15u;
    int i;
    for (i = 0; i < key->n; i++) {
        hash ^= (uint64_t)key->words[i];
        hash *= 0x9FB21C651E98DF25u;
        hash ^= hash >> 32;
    }
    return hash;
}

DispatchCache *new_cache(void) {
    DispatchCache *cache = PyMem_Calloc(1, sizeof(DispatchCache));
    if (cache == NULL) PyErr_NoMemory();
    return cache;
}

static void free_table(CacheSlot *table, int size) {
    int i;
    for (i = 0; i < size; i++) {
        PyMem_Free(table[i].words);
        Py_XDECREF(table[i].function);
        Py_XDECREF(table[i].entry);
    }
    PyMem_Free(table);
}

static void empty_cache(DispatchCache *cache) {
    CacheSlot *table = cache->table;
    int size = cache->size;
    *cache = (DispatchCache){NULL, 0, 0}; /* before releasing the entries, which may run other code */
    free_table(table, size);
}

void free_cache(DispatchCache *cache) {
    if (cache == NULL) return;
    empty_cache(cache);
    PyMem_Free(cache);
}

int visit_cache(const DispatchCache *cache, visitproc visit, void *arg) {
    int i;
    for (i = 0; cache != NULL && i < cache->size; i++) {
        Py_VISIT(cache->table[i].function);
        Py_VISIT(cache->table[i].entry);
    }
    return 0;
}

/* Return the slot of a key, used or free; NULL if the table is empty. */
static CacheSlot *slot_of(const DispatchCache *cache, const CallKey *key, uint64_t hash) {
    size_t last = (size_t)cache->size - 1, at = (size_t)hash & last;
    for (; cache->size > 0; at = (at + 1) & last) {
        CacheSlot *slot = &cache->table[at];
        if (slot->words == NULL) return slot;
        if (slot->hash == hash && slot->n == key->n && memcmp(slot->words, key->words, sizeof(long long) * (size_t)key->n) == 0) return slot;
    }
    return NULL;
}

/* Double the table. */
static int grow(DispatchCache *cache) {
    int size = cache->size > 0 ? 2 * cache->size : 16, i;
    CacheSlot *table = PyMem_Calloc((size_t)size, sizeof(CacheSlot));
    if (table == NULL) return 0;
    for (i = 0; i < cache->size; i++) {
        size_t at = (size_t)cache->table[i].hash & ((size_t)size - 1);
        if (cache->table[i].words == NULL) continue;
        while (table[at].words != NULL) at = (at + 1) & ((size_t)size - 1);
        table[at] = cache->table[i];
    }
    PyMem_Free(cache->table);
    cache->table = table;
    cache->size = size;
    return 1;
}

int find_entry(DispatchCache *cache, const CallKey *key, PyObject **entry) {
    uint64_t hash = hash_of(key);
    CacheSlot *slot = slot_of(cache, key, hash);
    long long *words;
    if (slot != NULL && slot->words != NULL) {
        *entry = Py_XNewRef(slot->entry);
        return slot->entry == NULL;
    }
    *entry = NULL;
    if (cache->count == MAX_ENTRIES) empty_cache(cache);
    if (2 * cache->count >= cache->size && !grow(cache)) return 0;
    slot = slot_of(cache, key, hash);
    if (slot->words != NULL) return 0; /* a destructor of a released entry made the same call */
    words = PyMem_Malloc(sizeof(long long) * (size_t)key->n);
    if (words == NULL) return 0;
    memcpy(words, key->words, sizeof(long long) * (size_t)key->n);
    *slot = (CacheSlot){hash, key->n, words, Py_NewRef(key->function), NULL};
    cache->count++;
    return 0;
}

void store_entry(DispatchCache *cache, const CallKey *key, PyObject *entry) {
    CacheSlot *slot = slot_of(cache, key, hash_of(key));
    if (slot != NULL && slot->words != NULL && slot->entry == NULL) slot->entry = Py_NewRef(entry);
}

/* ---- replaying an entry */

/* Whether an object is a valid entry with one result for n operands. */
int is_entry(PyObject *entry, Py_ssize_t n) {
    PyObject *steps;
    Py_ssize_t i, k;
    if (!PyTuple_CheckExact(entry) || PyTuple_GET_SIZE(entry) != 3 || !PyUnicode_CheckExact(PyTuple_GET_ITEM(entry, 2)) || !PyTuple_CheckExact(PyTuple_GET_ITEM(entry, 0))) return 0;
    steps = PyTuple_GET_ITEM(entry, 0);
    for (i = 0; i < PyTuple_GET_SIZE(steps); i++) {
        PyObject *step = PyTuple_GET_ITEM(steps, i), *step_operands;
        if (!PyTuple_CheckExact(step) || PyTuple_GET_SIZE(step) != 4 || !PyObject_TypeCheck(PyTuple_GET_ITEM(step, 0), core.primitive) || !PyDict_CheckExact(PyTuple_GET_ITEM(step, 1)) || !PyTuple_CheckExact(PyTuple_GET_ITEM(step, 2))) return 0;
        step_operands = PyTuple_GET_ITEM(step, 2);
        for (k = 0; k < PyTuple_GET_SIZE(step_operands); k++) {
            PyObject *ref = PyTuple_GET_ITEM(step_operands, k);
            if (PyLong_CheckExact(ref) ? PyLong_AsLong(ref) < 0 || PyLong_AsLong(ref) >= n + i : !PyTuple_CheckExact(ref) || PyTuple_GET_SIZE(ref) != 1) return 0;
        }
    }
    return 1;
}

/* Return a view of an array with the layout (shape, strides, offset). */
static PyObject *view_at(PyObject *x, PyObject *layout) {
    PyObject *shape, *strides;
    npy_intp dims[NPY_MAXDIMS], steps[NPY_MAXDIMS];
    Py_ssize_t offset;
    int i;
    if (!PyArg_ParseTuple(layout, "O!O!n", &PyTuple_Type, &shape, &PyTuple_Type, &strides, &offset)) return NULL;
    for (i = 0; i < PyTuple_GET_SIZE(shape) && i < NPY_MAXDIMS; i++) {
        dims[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
        steps[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(strides, i));
    }
    return view_of_memory(x, PyArray_BYTES((PyArrayObject *)x) + offset, i, dims, steps, PyArray_FLAGS((PyArrayObject *)x) & NPY_ARRAY_WRITEABLE);
}

/* Record the op of a step. values: the operands of the call, then the results of the steps before. */
static PyObject *replay_step(PyObject *step, PyObject *const *values, int mode) {
    PyObject *refs = PyTuple_GET_ITEM(step, 2), *layout = PyTuple_GET_ITEM(step, 3), *args[MAX_CALL_OPERANDS], *view = NULL, *output;
    Py_ssize_t k, n = PyTuple_GET_SIZE(refs);
    if (n > MAX_CALL_OPERANDS) return NULL;
    for (k = 0; k < n; k++) {
        PyObject *ref = PyTuple_GET_ITEM(refs, k);
        args[k] = PyLong_CheckExact(ref) ? values[PyLong_AsLong(ref)] : PyTuple_GET_ITEM(ref, 0);
    }
    if (layout != Py_None && mode != TRACES) {
        PyObject *raw = Py_NewRef(SLOT(args[0], core.raw));
        if (has_plain_strides(raw)) view = view_at(raw, layout);
        Py_DECREF(raw);
        if (view == NULL && PyErr_Occurred()) return NULL;
    }
    output = record(PyTuple_GET_ITEM(step, 0), args, n, PyTuple_GET_ITEM(step, 1), view, mode, current_frame);
    Py_XDECREF(view);
    return output;
}

/* Set the origin of a view, unless it has one from its base or from the mode. */
static void set_origin(PyObject *tensor, PyObject *origin) {
    PyObject *view = SLOT(tensor, core.tensor_view), *own = view == NULL || view == Py_None ? NULL : SLOT(view, core.view_origin);
    if (own != NULL && PyUnicode_Check(own) && PyUnicode_GET_LENGTH(own) == 0) Py_SETREF(SLOT(view, core.view_origin), Py_NewRef(origin));
}

/* Replace the array of a 0-d view by a copy, as NumPy returns a scalar. 0, or -1 with an error */
static int copy_number(PyObject *tensor, int mode) {
    PyObject *raw = Py_NewRef(SLOT(tensor, core.raw)), *number = mode == TRACES ? Py_NewRef(raw) : PyArray_NewCopy((PyArrayObject *)raw, NPY_CORDER); /* traced values have no memory to share */
    Py_DECREF(raw);
    if (number == NULL) {
        if (!PyErr_Occurred()) PyErr_NoMemory();
        return -1;
    }
    Py_SETREF(SLOT(tensor, core.raw), number);
    if (SLOT(tensor, core.tensor_view) != NULL) Py_SETREF(SLOT(tensor, core.tensor_view), Py_NewRef(Py_None));
    return 0;
}

/* entry: (steps, whether the result is a NumPy scalar (a copy, not a view), origin). A step: (prim, parameters, operands, layout). An operand is the
   index of a value (the operands of the call, then the result of each step), or a 1-tuple of a number or array. The layout of a view of a plain
   array is (shape, strides, offset), otherwise None. The result is that of the last step, and `origin` is the origin of its view, or "". If `origin`
   is a tuple, it has the origin of the view that each step makes from the operands, and the result is the tuple of all views. */
PyObject *replay(PyObject *entry, PyObject *const *operands, int n, int mode) {
    PyObject *steps = PyTuple_GET_ITEM(entry, 0), *origin = PyTuple_GET_ITEM(entry, 2), *values[MAX_VALUES], *views = NULL, *output = NULL;
    Py_ssize_t i, count = PyTuple_GET_SIZE(steps), begin = mode == TRACES ? trace_length() : 0;
    int nvalues = 0, several = PyTuple_CheckExact(origin);
    if (n + (several ? 0 : count) > MAX_VALUES || count == 0 || begin < 0) return NULL;
    if (several && (views = PyTuple_New(count)) == NULL) return NULL;
    Py_INCREF(entry);
    for (; nvalues < n; nvalues++) values[nvalues] = Py_NewRef(operands[nvalues]);
    for (i = 0; i < count; i++) {
        output = replay_step(PyTuple_GET_ITEM(steps, i), values, mode);
        if (output == NULL) break;
        if (several) {
            set_origin(output, PyTuple_GET_ITEM(origin, i));
            PyTuple_SET_ITEM(views, i, output); /* no other code sees the views before the last one is made */
        } else {
            values[nvalues++] = output;
        }
    }
    if (output != NULL && !several) {
        if (PyUnicode_GET_LENGTH(origin) > 0) set_origin(output, origin);
        if (PyTuple_GET_ITEM(entry, 1) == Py_True && copy_number(output, mode) < 0) output = NULL;
    }
    if (output == NULL && mode == TRACES && !PyErr_Occurred()) truncate_trace(begin); /* Python appends the calls again */
    output = output == NULL ? NULL : Py_NewRef(several ? views : output);
    Py_XDECREF(views);
    while (nvalues > 0) Py_DECREF(values[--nvalues]);
    Py_DECREF(entry);
    if (output == NULL && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_ValueError)) PyErr_Clear(); /* Python raises the error again, with a better message */
    return output;
}
