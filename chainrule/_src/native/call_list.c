/* The list that a recorder appends calls to.

   The calls of a loop are of few kinds. The list keeps the newest calls as objects and packs the others: a packed call is a row of integers, the
   index of its kind and the slots of its operands and results. Calls of one kind differ in the arrays only; the kind has a TracedCall without
   arrays, from which call_at() makes the call again. A slot is the index of a Var. The Var is released with its value once nothing but packed
   calls refers to it (released_values.c); variable_at() makes another one. encode_range() returns the arrays of EncodedCalls. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "call_list.h"

enum { PACK_AFTER_CALLS = 1 << 12, PACK_AFTER_BYTES = 8 << 20 };
static npy_int64 pack_after_calls = PACK_AFTER_CALLS, pack_after_bytes = PACK_AFTER_BYTES; /* see set_pack_sizes */

typedef struct {
    PyObject *prototype; /* a TracedCall with a Var without a number in place of each Var; owned */
    npy_int32 form, signature, operands, results;
    unsigned char flags;
} Kind;

typedef struct {
    PyObject_HEAD
    PyObject *unpacked;              /* a list of the calls that are not packed */
    PyObject *forms;                 /* find_form() of encode_calls */
    Encoder e;                       /* forms, signatures and layouts, and the arrays of Vars by slot */
    Buffer kinds, starts, slots;     /* of each packed call the index of its kind, and the end of its slots: operands, then results */
    Rows kind_rows;                  /* form, flags, layouts, op_name, code, lasti and step */
    Buffer all_kinds;                /* Kinds */
    Rows step_rows;                  /* step of a template, code and lasti */
    Buffer step_kinds;               /* for each of these rows the kind of the calls; the layouts of their arrays follow from the step */
    Buffer live_index;               /* for each slot the index among `live`, or -1 */
    LiveVar *live;
    Py_ssize_t live_count, live_capacity;
    PyObject *outside, *regions;     /* see release_unused */
    PyObject *owners;                /* {address: an array that is the base of the arrays without memory in one reserved piece} */
    npy_int64 new_bytes, next_bytes; /* allocated since calls were packed last, and when that is due again */
    npy_int64 next_calls;            /* the number of calls when that is due */
    npy_int32 *local;                /* by slot: see local_index */
    npy_intp local_count;
    int is_refused; /* two Vars have one number, or there was an error: no more calls are packed */
} CallList;

static PyTypeObject call_list_type;
static int unpack(CallList *self, Py_ssize_t begin);

static npy_intp count_packed(const CallList *self) { return count_ints(&self->kinds); }
static Kind *kind_at(const CallList *self, npy_int32 i) { return (Kind *)self->all_kinds.bytes + i; }
static Kind *packed_kind(const CallList *self, npy_intp i) { return kind_at(self, ints(&self->kinds)[i]); }
static npy_int32 *slots_of(const CallList *self, npy_intp i) { return ints(&self->slots) + (i == 0 ? 0 : ints(&self->starts)[i - 1]); }
static npy_intp count_slots(const CallList *self) { return count_ints(&self->live_index); }
static Py_ssize_t length_of(CallList *self) { return count_packed(self) + PyList_GET_SIZE(self->unpacked); }

PyObject *array_of_var(PyObject *var) { return SLOT(var, var_array) != NULL && PyArray_CheckExact(SLOT(var, var_array)) ? SLOT(var, var_array) : NULL; }

/* -- Vars and slots */

static LiveVar *live_at(const CallList *self, npy_int32 slot) { return ints(&self->live_index)[slot] < 0 ? NULL : self->live + ints(&self->live_index)[slot]; }

static LiveVar *add_live(CallList *self, PyObject *var, npy_int32 slot, npy_int32 call) {
    LiveVar *entry;
    if (self->live_count == self->live_capacity) {
        Py_ssize_t capacity = 2 * self->live_capacity + 64;
        LiveVar *live = PyMem_Realloc(self->live, (size_t)capacity * sizeof *live);
        if (live == NULL) return (LiveVar *)PyErr_NoMemory();
        self->live = live;
        self->live_capacity = capacity;
    }
    entry = self->live + self->live_count;
    *entry = (LiveVar){Py_NewRef(var), slot, -1, call, 0, 0, 0, 0};
    ints(&self->live_index)[slot] = (npy_int32)self->live_count++;
    return entry;
}

/* Return the slot of a Var; -1 if it has none. */
static npy_int32 find_slot(const CallList *self, PyObject *var) {
    const Variables *v = &self->e.variables;
    long long number = SLOT(var, var_number) == NULL ? -1 : PyLong_AsLongLong(SLOT(var, var_number));
    Py_ssize_t i;
    if (number >= 0 && number < v->numbers && v->by_number[number] >= 0) {
        const LiveVar *entry = live_at(self, v->by_number[number]);
        if (entry != NULL && entry->var == var) return entry->slot;
    }
    for (i = 0; i < self->live_count; i++) { /* its number was changed, or calls have another Var with this number */
        if (self->live[i].var == var) return self->live[i].slot;
    }
    return -1;
}

static int note_number(Variables *v, npy_int64 number, npy_int32 slot) {
    if (number >= v->numbers) {
        npy_int64 n = number + number / 2 + 1024;
        npy_int32 *by_number = PyMem_Realloc(v->by_number, (size_t)n * sizeof *by_number);
        if (by_number == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        memset(by_number + v->numbers, 0xFF, (size_t)(n - v->numbers) * sizeof *by_number);
        v->by_number = by_number;
        v->numbers = n;
    }
    v->by_number[number] = slot;
    return 0;
}

/* Remove the slots from an index on, which no call has. */
static void remove_slots(CallList *self, npy_int32 slot) {
    Variables *v = &self->e.variables;
    Buffer *buffers[] = {&self->live_index, &v->layout, &v->number};
    size_t k;
    for (k = 0; k < sizeof buffers / sizeof *buffers; k++) {
        if (count_ints(buffers[k]) > slot) buffers[k]->length = (size_t)slot * sizeof(npy_int32);
    }
    if (v->address.length > (size_t)slot * sizeof(npy_int64)) v->address.length = (size_t)slot * sizeof(npy_int64);
}

/* Return the live Var of a call, which is added if it is new; NULL with an error, or without one if another Var has its number. */
static LiveVar *live_of(CallList *self, PyObject *var, npy_int32 call, int is_result) {
    Variables *v = &self->e.variables;
    long long number = PyLong_AsLongLong(SLOT(var, var_number));
    npy_int32 slot = number >= 0 && number < v->numbers ? v->by_number[number] : -1, layout;
    LiveVar *entry = slot < 0 ? NULL : live_at(self, slot);
    PyObject *array = array_of_var(var), *address;
    int done;
    if (entry != NULL && entry->var == var) return entry;
    if (number < 0 || number > 1 << 30 || slot >= 0) {
        self->is_refused = 1;
        return NULL;
    }
    layout = layout_number(v, array);
    slot = (npy_int32)count_slots(self);
    if (layout == -2 || append_int(&self->live_index, -1) < 0 || append_int(&v->layout, layout) < 0 || append_int(&v->number, (npy_int32)number) < 0 || append_long(&v->address, 0) < 0 || note_number(v, number, slot) < 0 || (entry = add_live(self, var, slot, call)) == NULL) {
        remove_slots(self, slot);
        if (number < v->numbers) v->by_number[number] = -1;
        self->is_refused = 1;
        return NULL;
    }
    if (is_result || array == NULL) return entry;
    address = PyLong_FromVoidPtr(owner_of(array));
    done = address == NULL ? -1 : PySet_Add(self->outside, address);
    Py_XDECREF(address);
    if (done < 0) self->is_refused = 1; /* otherwise the memory of an array from outside might be released */
    return done < 0 ? NULL : entry;
}

/* Return the base of a released array with some address: a new reference. All arrays that shared memory have one base. */
static PyObject *base_at(const CallList *self, npy_int64 address) {
    ReservedPiece piece = find_piece(self->regions, address);
    PyObject *key, *base = NULL;
    Py_ssize_t i;
    if (piece.region == NULL) { /* a view of an array from outside */
        for (i = 0; i < self->live_count; i++) {
            PyObject *array = self->live[i].first >= 0 || self->live[i].is_empty ? NULL : array_of_var(self->live[i].var);
            PyArrayObject *owner = array == NULL ? NULL : (PyArrayObject *)owner_of(array);
            npy_int64 begin = owner == NULL ? 0 : (npy_int64)(size_t)PyArray_DATA(owner);
            if (owner != NULL && begin <= address && address < begin + PyArray_NBYTES(owner)) return Py_NewRef((PyObject *)owner);
        }
        PyErr_SetString(PyExc_RuntimeError, "the base of a recorded view is gone");
        return NULL;
    }
    key = PyLong_FromLongLong(piece.begin);
    base = key == NULL ? NULL : Py_XNewRef(PyDict_GetItemWithError(self->owners, key));
    if (base == NULL && !PyErr_Occurred()) {
        base = PyArray_NewFromDescr(&PyArray_Type, PyArray_DescrFromType(NPY_UINT8), 1, &piece.nbytes, NULL, (void *)(size_t)piece.begin, NPY_ARRAY_WRITEABLE, NULL);
        if (base != NULL && (PyArray_SetBaseObject((PyArrayObject *)base, Py_NewRef(piece.region)) < 0 || PyDict_SetItem(self->owners, key, base) < 0)) Py_CLEAR(base);
    }
    Py_XDECREF(key);
    return base;
}

/* Return an array without memory of its own. */
static PyObject *empty_array(const CallList *self, npy_int32 slot) {
    const Variables *v = &self->e.variables;
    size_t length;
    npy_int32 row = ints(&v->layout_rows)[ints(&v->layout)[slot]];
    const npy_int64 *words = row_at(&v->layouts, row, &length);
    npy_int64 address = ((npy_int64 *)v->address.bytes)[slot];
    npy_intp sizes[2 * NPY_MAXDIMS];
    PyObject *array, *base = base_at(self, address);
    int n = (int)words[1], k;
    if (base == NULL) return NULL;
    for (k = 0; k < 2 * n; k++) sizes[k] = (npy_intp)words[2 + k];
    array = PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)Py_NewRef((PyObject *)(size_t)words[0]), n, sizes, sizes + n, (void *)(size_t)address, NPY_ARRAY_WRITEABLE, NULL);
    if (array == NULL) Py_DECREF(base);
    else if (PyArray_SetBaseObject((PyArrayObject *)array, base) < 0) Py_CLEAR(array);
    return array;
}

/* Return the Var of a slot: a new reference. A released one is made again, without its value. */
static PyObject *variable_at(CallList *self, npy_int32 slot) {
    LiveVar *entry = live_at(self, slot);
    PyObject *var, *array;
    if (entry != NULL) return Py_NewRef(entry->var);
    array = empty_array(self, slot);
    var = array == NULL ? NULL : var_type->tp_alloc(var_type, 0);
    if (var != NULL) {
        SLOT(var, var_number) = PyLong_FromLong(ints(&self->e.variables.number)[slot]);
        SLOT(var, var_dtype) = Py_NewRef((PyObject *)PyArray_DESCR((PyArrayObject *)array));
        SLOT(var, var_shape) = PyArray_IntTupleFromIntp(PyArray_NDIM((PyArrayObject *)array), PyArray_DIMS((PyArrayObject *)array));
        SLOT(var, var_array) = Py_NewRef(array);
        entry = SLOT(var, var_number) == NULL || SLOT(var, var_shape) == NULL ? NULL : add_live(self, var, slot, (npy_int32)count_packed(self));
        if (entry == NULL) Py_CLEAR(var);
        else entry->is_empty = 1;
    }
    Py_XDECREF(array);
    return var;
}

/* -- pack */

/* Append the slot of an operand or a result of a call: 1, 0 if another Var has its number, -1 error. */
static int append_slot(CallList *self, PyObject *var, npy_int32 call, int is_result, int is_kept) {
    LiveVar *entry = live_of(self, var, call, is_result);
    if (entry == NULL) return PyErr_Occurred() ? -1 : 0;
    if (is_result) entry->first = call;
    entry->last = call;
    entry->is_kept |= (unsigned char)is_kept;
    return append_int(&self->slots, entry->slot) < 0 ? -1 : 1;
}

typedef struct {
    CallList *list;
    npy_int32 call;
    int is_kept;
} Reader; /* the call that reads a Var */

static int note_operand(PyObject *var, void *context) {
    const Reader *reader = context;
    return append_slot(reader->list, var, reader->call, 0, reader->is_kept) > 0 ? 0 : -1;
}

/* Return an object with Vars replaced, in nested containers as in visit_vars(): a new reference. */
typedef PyObject *(*ReplaceVar)(PyObject *var, void *context);

static PyObject *replace_vars(PyObject *x, ReplaceVar replace, void *context) {
    PyObject *made = NULL, *part;
    Py_ssize_t i;
    if (Py_TYPE(x) == var_type) return replace(x, context);
    if (PyTuple_CheckExact(x)) {
        made = PyTuple_New(PyTuple_GET_SIZE(x));
        for (i = 0; made != NULL && i < PyTuple_GET_SIZE(x); i++) {
            part = replace_vars(PyTuple_GET_ITEM(x, i), replace, context);
            if (part == NULL) Py_CLEAR(made);
            else PyTuple_SET_ITEM(made, i, part);
        }
        return made;
    }
    if (PyList_CheckExact(x)) {
        made = PyList_New(0);
        for (i = 0; made != NULL && i < PyList_GET_SIZE(x); i++) {
            part = replace_vars(PyList_GET_ITEM(x, i), replace, context);
            if (part == NULL || PyList_Append(made, part) < 0) Py_CLEAR(made);
            Py_XDECREF(part);
        }
        return made;
    }
    if (PyDict_CheckExact(x) && PyDict_GET_SIZE(x) > 0) {
        PyObject *name, *value;
        made = PyDict_New();
        for (i = 0; made != NULL && PyDict_Next(x, &i, &name, &value);) {
            part = replace_vars(value, replace, context);
            if (part == NULL || PyDict_SetItem(made, name, part) < 0) Py_CLEAR(made);
            Py_XDECREF(part);
        }
        return made;
    }
    if (PySlice_Check(x)) {
        PySliceObject *slice = (PySliceObject *)x;
        PyObject *start = replace_vars(slice->start, replace, context), *stop = replace_vars(slice->stop, replace, context), *step = replace_vars(slice->step, replace, context);
        if (start != NULL && stop != NULL && step != NULL) made = PySlice_New(start, stop, step);
        Py_XDECREF(start);
        Py_XDECREF(stop);
        Py_XDECREF(step);
        return made;
    }
    return Py_NewRef(x);
}

/* Return a copy of a call with other arguments and results, which may be NULL with an error and are stolen. */
static PyObject *copy_of_call(PyObject *call, PyObject *args, PyObject *kwargs, PyObject *results) {
    PyObject *copy = args == NULL || kwargs == NULL || results == NULL ? NULL : call_type->tp_alloc(call_type, 0);
    const Py_ssize_t copied_slots[] = {call_function, call_method, call_op_name, call_code, call_lasti, call_pure, call_kept, call_step};
    size_t k;
    if (copy == NULL) {
        Py_XDECREF(args);
        Py_XDECREF(kwargs);
        Py_XDECREF(results);
        return NULL;
    }
    for (k = 0; k < sizeof copied_slots / sizeof *copied_slots; k++) SLOT(copy, copied_slots[k]) = Py_XNewRef(SLOT(call, copied_slots[k]));
    SLOT(copy, call_args) = args;
    SLOT(copy, call_kwargs) = kwargs;
    SLOT(copy, call_results) = results;
    return copy;
}

static PyObject *without_array(PyObject *var, void *unused) {
    static PyObject *placeholder; /* a Var without attributes */
    (void)var;
    (void)unused;
    if (placeholder == NULL) placeholder = var_type->tp_alloc(var_type, 0);
    return Py_XNewRef(placeholder);
}

static int add_kind(CallList *self, PyObject *call, npy_int32 form, npy_int32 operands, const npy_int64 *layouts, size_t n, unsigned char flags) {
    Encoder *e = &self->e;
    Kind kind = {NULL, form, 0, operands, (npy_int32)PyTuple_GET_SIZE(SLOT(call, call_results)), flags};
    size_t k;
    e->row.length = 0;
    if (append_long(&e->row, form) < 0) return -1;
    for (k = 0; k < n; k++) {
        if (append_long(&e->row, layouts[k]) < 0) return -1;
    }
    kind.signature = row_number(&e->distinct, (npy_int64 *)e->row.bytes, e->row.length / sizeof(npy_int64));
    if (kind.signature < 0) return -1;
    kind.prototype = copy_of_call(call, replace_vars(SLOT(call, call_args), without_array, NULL), replace_vars(SLOT(call, call_kwargs), without_array, NULL), PyTuple_New(0));
    if (kind.prototype == NULL) return -1;
    if (append_bytes(&self->all_kinds, &kind, sizeof kind) < 0) {
        Py_DECREF(kind.prototype);
        return -1;
    }
    return 0;
}

/* Set the row of a kind from a form, the slots of a call from an index on, and its source: -1 error */
static int set_kind_row(CallList *self, npy_int32 form, unsigned char flags, npy_intp begin, PyObject *op_name, PyObject *code, npy_int64 lasti, PyObject *step) {
    Buffer *row = &self->e.row;
    npy_intp k;
    row->length = 0;
    if (append_long(row, form) < 0 || append_long(row, flags) < 0) return -1;
    for (k = begin; k < count_ints(&self->slots); k++) {
        if (append_long(row, ints(&self->e.variables.layout)[ints(&self->slots)[k]]) < 0) return -1;
    }
    return append_long(row, (npy_int64)(size_t)op_name) < 0 || append_long(row, (npy_int64)(size_t)code) < 0 || append_long(row, lasti) < 0 || append_long(row, (npy_int64)(size_t)step) < 0 ? -1 : 0;
}

/* Note the kind of the calls of a step: -1 error. */
static int note_step(CallList *self, PyObject *call, npy_int32 kind, npy_int64 lasti) {
    npy_int64 row[3] = {(npy_int64)(size_t)step_of(call), (npy_int64)(size_t)SLOT(call, call_code), lasti};
    npy_int32 count = self->step_rows.count, found = row[0] == 0 ? -1 : row_number(&self->step_rows, row, 3);
    if (row[0] == 0) return 0;
    return found < 0 || (found == count && append_int(&self->step_kinds, kind) < 0) ? -1 : 0;
}

/* Remove the rows from an index on. */
static void remove_rows(CallList *self, npy_intp begin) {
    self->slots.length = (size_t)(begin == 0 ? 0 : ints(&self->starts)[begin - 1]) * sizeof(npy_int32);
    self->kinds.length = self->starts.length = (size_t)begin * sizeof(npy_int32);
}

/* Append a row whose slots were appended: 1, -1 error. */
static int append_kind(CallList *self, npy_int32 kind) {
    npy_intp n = count_packed(self);
    if (append_int(&self->starts, (npy_int32)count_ints(&self->slots)) == 0 && append_int(&self->kinds, kind) == 0) return 1;
    self->starts.length = (size_t)n * sizeof(npy_int32);
    return -1;
}

/* Pack a call: 1, 0 if it has no results yet, -1 error. */
static int pack_call(CallList *self, PyObject *call) {
    Encoder *e = &self->e;
    PyObject *results = SLOT(call, call_results), *lasti = SLOT(call, call_lasti);
    npy_int32 form, kind, count = self->kind_rows.count, at = (npy_int32)count_packed(self);
    npy_intp begin = count_ints(&self->slots), middle, k;
    Reader reader = {self, at, SLOT(call, call_pure) != Py_True};
    unsigned char flags = (SLOT(call, call_pure) == Py_True ? PURE : 0) | (SLOT(call, call_kept) == Py_False ? 0 : KEPT);
    npy_int64 location;
    if (results == NULL || !PyTuple_CheckExact(results) || SLOT(call, call_args) == NULL || SLOT(call, call_kwargs) == NULL) return 0;
    location = lasti != NULL && PyLong_CheckExact(lasti) ? PyLong_AsLongLong(lasti) : -1;
    if (find_form(e, at, call, self->forms, &form) < 0) return -1;
    if (visit_vars(SLOT(call, call_args), note_operand, &reader) < 0 || visit_vars(SLOT(call, call_kwargs), note_operand, &reader) < 0) return -1;
    middle = count_ints(&self->slots);
    for (k = 0; k < PyTuple_GET_SIZE(results); k++) {
        if (append_slot(self, PyTuple_GET_ITEM(results, k), at, 1, reader.is_kept) <= 0) return -1;
    }
    if (set_kind_row(self, form, flags, begin, SLOT(call, call_op_name), SLOT(call, call_code), location, SLOT(call, call_step)) < 0) return -1;
    kind = row_number(&self->kind_rows, (npy_int64 *)e->row.bytes, e->row.length / sizeof(npy_int64));
    if (kind < 0) return -1;
    if (kind == count) {
        size_t length;
        const npy_int64 *row = row_at(&self->kind_rows, kind, &length);
        if (add_kind(self, call, form, (npy_int32)(middle - begin), row + 2, (size_t)(count_ints(&self->slots) - begin), flags) < 0) return -1;
        if (note_step(self, call, kind, location) < 0) return -1;
    }
    return append_kind(self, kind);
}

/* Pack all calls: -1 error. */
static int pack_all(CallList *self) {
    Py_ssize_t i, n = PyList_GET_SIZE(self->unpacked);
    npy_intp before = count_packed(self);
    int packed = 1;
    for (i = 0; i < n && packed > 0;) {
        PyObject *call = PyList_GET_ITEM(self->unpacked, i);
        if (Py_TYPE(call) != call_type) {
            PyErr_SetString(PyExc_TypeError, "a list of calls has an object that is no TracedCall");
            packed = -1;
            break;
        }
        packed = pack_call(self, call);
        if (packed <= 0) remove_rows(self, count_packed(self));
        i += packed > 0;
    }
    if (i > 0 && PyList_SetSlice(self->unpacked, 0, i, NULL) < 0) {
        remove_rows(self, before); /* the list still has these calls */
        self->is_refused = 1;
        return -1;
    }
    if (packed >= 0) return 0;
    self->is_refused = 1;
    return PyErr_Occurred() ? -1 : unpack(self, 0);
}

/* Whether calls may be appended as rows: 1, 0, -1 error. */
static int may_append_rows(CallList *self) {
    if (count_packed(self) == 0 || self->is_refused) return 0;
    if (PyList_GET_SIZE(self->unpacked) == 0) return 1;
    return pack_all(self) < 0 ? -1 : PyList_GET_SIZE(self->unpacked) == 0 && !self->is_refused;
}

/* Find the user's source location of a call that cannot be within a try block: 1, 0 if Python must do it, -1 error. */
static int find_call_location(SourceLocation location, PyObject **code, long *lasti) {
    int found = find_location(location, code, lasti);
    return found > 0 && (!PyCode_Check(*code) || PyBytes_GET_SIZE(((PyCodeObject *)*code)->co_exceptiontable) > 0) ? 0 : found;
}

/* Append the slots of some Vars: 1, 0 if another Var has the number of one, -1 error. */
static int append_slots(CallList *self, PyObject *const *vars, Py_ssize_t n, npy_int32 call, int are_results) {
    int done = 1;
    Py_ssize_t i;
    for (i = 0; i < n && done > 0; i++) {
        if (Py_TYPE(vars[i]) == var_type) done = append_slot(self, vars[i], call, are_results, 0);
    }
    return done;
}

/* End a row of which the slots from `begin` on were appended, if `done` is 1 and it has a kind, or drop them. Return `done`, or 0 without a kind. */
static int end_row(CallList *self, int done, npy_intp begin, npy_int32 kind) {
    if (done > 0 && kind >= 0 && (done = append_kind(self, kind)) > 0) return 1;
    self->slots.length = (size_t)begin * sizeof(npy_int32);
    if (done < 0) self->is_refused = 1;
    return done < 0 ? -1 : 0;
}

int append_row(PyObject *calls, PyObject *function, PyObject *const *args, Py_ssize_t n, PyObject *op_name, SourceLocation location, PyObject *result) {
    CallList *self = (CallList *)calls;
    npy_int64 row[1 + 2 * MAX_UFUNC_ARGS];
    npy_int32 form, kind = -1, at;
    npy_intp begin;
    PyObject *code;
    size_t length;
    long lasti;
    int done;
    if (Py_TYPE(calls) != &call_list_type || n > MAX_UFUNC_ARGS) return 0;
    done = may_append_rows(self);
    if (done > 0) done = find_call_location(location, &code, &lasti);
    length = done > 0 ? ufunc_row(function, args, n, row) : 0;
    form = length == 0 ? -1 : find_row(&self->e.ufunc_calls, row, length);
    if (form < 0) return done < 0 ? -1 : 0;
    begin = count_ints(&self->slots);
    at = (npy_int32)count_packed(self);
    done = append_slots(self, args, n, at, 0);
    if (done > 0) done = append_slots(self, &result, 1, at, 1);
    if (done > 0 && set_kind_row(self, form, PURE, begin, op_name, code, lasti, Py_None) < 0) done = -1;
    if (done > 0) kind = find_row(&self->kind_rows, (npy_int64 *)self->e.row.bytes, self->e.row.length / sizeof(npy_int64));
    return end_row(self, done, begin, kind);
}

int append_step(Recording *r, PyObject *step, PyObject *const *vars, Py_ssize_t operands, Py_ssize_t results) {
    PyObject *calls = SLOT(r->recorder, recorder_calls), *code;
    CallList *self = (CallList *)calls;
    npy_int64 row[3];
    npy_int32 found, kind, at;
    npy_intp begin;
    long lasti;
    int done;
    if (calls == NULL || Py_TYPE(calls) != &call_list_type) return 0;
    done = may_append_rows(self);
    if (done > 0) done = find_call_location(r->location, &code, &lasti);
    if (done <= 0) return done;
    row[0] = (npy_int64)(size_t)step;
    row[1] = (npy_int64)(size_t)code;
    row[2] = lasti;
    found = find_row(&self->step_rows, row, 3);
    kind = found < 0 ? -1 : ints(&self->step_kinds)[found];
    if (kind < 0 || kind_at(self, kind)->flags != PURE || kind_at(self, kind)->operands != operands || kind_at(self, kind)->results != results) return 0;
    if (r->location.code == NULL && keep_location(r, code, lasti) < 0) return -1;
    begin = count_ints(&self->slots);
    at = (npy_int32)count_packed(self);
    done = append_slots(self, vars, operands, at, 0);
    if (done > 0) done = append_slots(self, vars + operands, results, at, 1);
    return end_row(self, done, begin, kind);
}

/* Drop the Vars that are not used any more, and their values: -1 error. */
static int release_variables(CallList *self, PyObject *recorder) {
    static PyObject *name;
    PyObject *boundaries, *array = NULL;
    npy_int64 bytes;
    Py_ssize_t i, kept = 0, count;
    if (name == NULL && (name = PyUnicode_InternFromString("boundaries")) == NULL) return -1;
    boundaries = PyObject_CallMethodNoArgs(recorder, name);
    if (boundaries != NULL) array = PyArray_FROMANY(boundaries, NPY_INT64, 1, 1, NPY_ARRAY_CARRAY);
    Py_XDECREF(boundaries);
    if (array == NULL) return -1;
    bytes = release_unused(self->live, self->live_count, self->outside, self->regions, PyArray_DATA((PyArrayObject *)array), PyArray_SIZE((PyArrayObject *)array));
    Py_DECREF(array);
    if (bytes < 0) return -1;
    count = self->live_count;
    for (i = 0; i < count; i++) {
        LiveVar entry = self->live[i];
        if (!entry.is_released) {
            ints(&self->live_index)[entry.slot] = (npy_int32)kept;
            self->live[kept++] = entry;
            continue;
        }
        ((npy_int64 *)self->e.variables.address.bytes)[entry.slot] = entry.address;
        ints(&self->live_index)[entry.slot] = -1;
        Py_DECREF(entry.var); /* frees an array, and runs no other code */
    }
    self->live_count = kept;
    if (drop_dead_references(recorder) < 0) return -1;
    self->new_bytes = 0;
    self->next_bytes = bytes / 4 > pack_after_bytes ? bytes / 4 : pack_after_bytes;
    self->next_calls = length_of(self) + (kept / 4 > pack_after_calls ? kept / 4 : pack_after_calls);
    return 0;
}

static int pack(CallList *self, PyObject *recorder) { return pack_all(self) < 0 ? -1 : self->is_refused ? 0 : release_variables(self, recorder); }

/* Return the bytes that were allocated for a new value: 0 if it is in the memory of another array. */
static npy_int64 new_memory(PyObject *array) {
    PyObject *owner = PyArray_BASE((PyArrayObject *)array);
    if (owner == NULL) owner = array;
    else if (!PyArray_Check(owner) || Py_REFCNT(owner) > 1) return 0;
    return PyArray_NBYTES((PyArrayObject *)owner);
}

static CallList *list_of(PyObject *recorder) {
    PyObject *calls = SLOT(recorder, recorder_calls);
    return calls != NULL && Py_TYPE(calls) == &call_list_type ? (CallList *)calls : NULL;
}

int note_new_value(PyObject *recorder, PyObject *array) {
    CallList *self = list_of(recorder);
    int done;
    if (self == NULL) return 0;
    self->new_bytes += new_memory(array);
    if (self->is_refused || (self->new_bytes < self->next_bytes && length_of(self) < self->next_calls)) return 0;
    Py_INCREF(self);
    done = pack(self, recorder);
    Py_DECREF(self);
    return done;
}

int pack_calls(PyObject *recorder) {
    CallList *self = list_of(recorder);
    int done = 0;
    if (self == NULL || self->is_refused || count_packed(self) == 0) return 0;
    Py_INCREF(self);
    done = pack(self, recorder);
    Py_DECREF(self);
    if (PyList_GET_SIZE(self->regions) > 1) trim_memory(); /* much was released, and the plan is about to allocate its own memory */
    return done;
}

PackSizes set_pack_sizes(PackSizes sizes) {
    PackSizes before = {pack_after_calls, pack_after_bytes};
    pack_after_calls = sizes.calls;
    pack_after_bytes = sizes.bytes;
    return before;
}

/* -- calls as objects */

typedef struct {
    CallList *list;
    const npy_int32 *slot;
} NextSlots;

static PyObject *next_operand(PyObject *var, void *context) {
    NextSlots *operands = context;
    (void)var;
    return variable_at(operands->list, *operands->slot++);
}

static PyObject *call_at(CallList *self, Py_ssize_t i) {
    Kind kind;
    NextSlots operands;
    PyObject *args, *kwargs, *results, *call;
    npy_int32 k;
    if (i >= count_packed(self)) return Py_NewRef(PyList_GET_ITEM(self->unpacked, i - count_packed(self)));
    kind = *packed_kind(self, i);
    operands = (NextSlots){self, slots_of(self, i)};
    Py_INCREF(kind.prototype);
    args = replace_vars(SLOT(kind.prototype, call_args), next_operand, &operands);
    kwargs = args == NULL ? NULL : replace_vars(SLOT(kind.prototype, call_kwargs), next_operand, &operands);
    results = kwargs == NULL ? NULL : PyTuple_New(kind.results);
    for (k = 0; results != NULL && k < kind.results; k++) {
        PyObject *var = next_operand(NULL, &operands);
        if (var == NULL) Py_CLEAR(results);
        else PyTuple_SET_ITEM(results, k, var);
    }
    call = copy_of_call(kind.prototype, args, kwargs, results);
    Py_DECREF(kind.prototype);
    return call;
}

static PyObject *calls_between(CallList *self, Py_ssize_t begin, Py_ssize_t end) {
    PyObject *calls = PyList_New(0), *call;
    for (; calls != NULL && begin < end; begin++) {
        call = call_at(self, begin);
        if (call == NULL || PyList_Append(calls, call) < 0) Py_CLEAR(calls);
        Py_XDECREF(call);
    }
    return calls;
}

/* Make objects of the packed calls from an index on: -1 error. */
static int unpack(CallList *self, Py_ssize_t begin) {
    PyObject *calls = begin < count_packed(self) ? calls_between(self, begin, count_packed(self)) : NULL;
    Py_ssize_t i;
    int done = 0;
    if (calls != NULL) {
        done = PyList_SetSlice(self->unpacked, 0, 0, calls);
        Py_DECREF(calls);
        if (done < 0) return -1;
        remove_rows(self, begin);
        for (i = 0; i < self->live_count; i++) {
            if (self->live[i].last >= begin) self->live[i].last = (npy_int32)begin - 1;
        }
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* -- the type */

static PyObject *new_call_list(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *forms;
    CallList *self;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "O", &forms)) return NULL;
    self = (CallList *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->forms = Py_NewRef(forms);
    self->unpacked = PyList_New(0);
    self->outside = PySet_New(NULL);
    self->regions = PyList_New(0);
    self->owners = PyDict_New();
    self->e.variables.layout_indices = PyDict_New();
    self->e.variables.dtypes = PyList_New(0);
    self->next_bytes = pack_after_bytes;
    self->next_calls = pack_after_calls;
    if (self->unpacked == NULL || self->outside == NULL || self->regions == NULL || self->owners == NULL || self->e.variables.layout_indices == NULL || self->e.variables.dtypes == NULL) Py_CLEAR(self);
    return (PyObject *)self;
}

static int traverse_call_list(PyObject *object, visitproc visit, void *arg) {
    CallList *self = (CallList *)object;
    size_t k;
    Py_ssize_t i;
    Py_VISIT(self->unpacked);
    Py_VISIT(self->forms);
    Py_VISIT(self->e.variables.layout_indices);
    for (i = 0; i < self->live_count; i++) Py_VISIT(self->live[i].var);
    for (k = 0; k < self->all_kinds.length / sizeof(Kind); k++) Py_VISIT(kind_at(self, (npy_int32)k)->prototype);
    return 0;
}

static int clear_call_list(PyObject *object) {
    CallList *self = (CallList *)object;
    self->kinds.length = self->starts.length = self->slots.length = self->live_index.length = 0;
    self->e.variables.numbers = 0;
    self->is_refused = 1;
    if (self->unpacked != NULL && PyList_SetSlice(self->unpacked, 0, PyList_GET_SIZE(self->unpacked), NULL) < 0) PyErr_Clear();
    Py_CLEAR(self->forms);
    while (self->live_count > 0) Py_DECREF(self->live[--self->live_count].var);
    while (self->all_kinds.length > 0) {
        self->all_kinds.length -= sizeof(Kind);
        Py_DECREF(((Kind *)(self->all_kinds.bytes + self->all_kinds.length))->prototype);
    }
    return 0;
}

static void free_call_list(PyObject *object) {
    CallList *self = (CallList *)object;
    Buffer *buffers[] = {&self->kinds, &self->starts, &self->slots, &self->all_kinds, &self->step_kinds, &self->live_index};
    size_t i;
    PyObject_GC_UnTrack(object);
    clear_call_list(object);
    Py_CLEAR(self->unpacked);
    for (i = 0; i < sizeof buffers / sizeof *buffers; i++) PyMem_Free(buffers[i]->bytes);
    Py_CLEAR(self->e.variables.layout_indices);
    Py_CLEAR(self->e.variables.dtypes);
    free_encoder(&self->e);
    free_rows(&self->kind_rows);
    free_rows(&self->step_rows);
    PyMem_Free(self->live);
    PyMem_Free(self->local);
    Py_CLEAR(self->outside);
    Py_CLEAR(self->regions);
    Py_CLEAR(self->owners);
    Py_TYPE(object)->tp_free(object);
}

static Py_ssize_t length_of_list(PyObject *self) { return length_of((CallList *)self); }

static PyObject *item_of_list(PyObject *object, Py_ssize_t i) {
    CallList *self = (CallList *)object;
    if (i < 0 || i >= length_of_list(object)) {
        PyErr_SetString(PyExc_IndexError, "the trace has fewer calls");
        return NULL;
    }
    return call_at(self, i);
}

static PyObject *items_of_list(PyObject *object, PyObject *at) {
    CallList *self = (CallList *)object;
    Py_ssize_t begin, end, step, i;
    if (!PySlice_Check(at)) {
        i = PyNumber_AsSsize_t(at, PyExc_IndexError);
        if (i == -1 && PyErr_Occurred()) return NULL;
        return item_of_list(object, i < 0 ? i + length_of_list(object) : i);
    }
    if (PySlice_Unpack(at, &begin, &end, &step) < 0) return NULL;
    PySlice_AdjustIndices(length_of_list(object), &begin, &end, step);
    if (step != 1) {
        PyErr_SetString(PyExc_ValueError, "a slice of the calls of a trace has no step");
        return NULL;
    }
    return calls_between(self, begin, end);
}

static void delete_row(CallList *self, npy_intp i) {
    npy_int32 *starts = ints(&self->starts), begin = (npy_int32)(slots_of(self, i) - ints(&self->slots)), width = starts[i] - begin;
    npy_intp n = count_packed(self), k;
    memmove(ints(&self->slots) + begin, ints(&self->slots) + starts[i], self->slots.length - (size_t)starts[i] * sizeof(npy_int32));
    memmove(ints(&self->kinds) + i, ints(&self->kinds) + i + 1, (size_t)(n - i - 1) * sizeof(npy_int32));
    for (k = i + 1; k < n; k++) starts[k - 1] = starts[k] - width;
    self->slots.length -= (size_t)width * sizeof(npy_int32);
    self->kinds.length -= sizeof(npy_int32);
    self->starts.length -= sizeof(npy_int32);
    for (k = 0; k < self->live_count; k++) {
        LiveVar *entry = self->live + k;
        if (entry->first == i) entry->first = -1; /* no call computes it */
        else if (entry->first > i) entry->first--;
        if (entry->last >= i) entry->last--;
    }
}

/* calls[begin:] = list, and del calls[i] */
static int set_items_of_list(PyObject *object, PyObject *at, PyObject *value) {
    CallList *self = (CallList *)object;
    Py_ssize_t begin, end, step;
    int is_slice = PySlice_Check(at);
    if (is_slice) {
        if (PySlice_Unpack(at, &begin, &end, &step) < 0) return -1;
        PySlice_AdjustIndices(length_of(self), &begin, &end, step);
    } else {
        begin = PyNumber_AsSsize_t(at, PyExc_IndexError);
        if (begin == -1 && PyErr_Occurred()) return -1;
        end = begin + 1;
    }
    if (begin < 0 || begin > length_of(self) || (is_slice ? end != length_of(self) || value == NULL : value != NULL || end > length_of(self))) {
        PyErr_SetString(PyExc_ValueError, "calls of a trace are replaced up to the end, or removed one by one");
        return -1;
    }
    if (!is_slice && begin < count_packed(self)) {
        delete_row(self, begin);
        return 0;
    }
    if (unpack(self, begin) < 0) return -1;
    return PyList_SetSlice(self->unpacked, begin - count_packed(self), end - count_packed(self), value);
}

static PyObject *append_to_list(PyObject *self, PyObject *call) { return PyList_Append(((CallList *)self)->unpacked, call) < 0 ? NULL : Py_NewRef(Py_None); }

int append_call(PyObject *calls, PyObject *call) {
    if (Py_TYPE(calls) == &call_list_type) return PyList_Append(((CallList *)calls)->unpacked, call);
    return 1;
}

Py_ssize_t count_calls_of(PyObject *calls) { return Py_TYPE(calls) == &call_list_type ? length_of((CallList *)calls) : -1; }

static PyObject *count_packed_calls(PyObject *self, PyObject *unused) {
    (void)unused;
    return PyLong_FromSsize_t(count_packed((CallList *)self));
}

static int parse_range(CallList *self, PyObject *args, Py_ssize_t *begin, Py_ssize_t *end) {
    if (!PyArg_ParseTuple(args, "nn", begin, end)) return -1;
    if (0 <= *begin && *begin <= *end && *end <= count_packed(self)) return 0;
    PyErr_SetString(PyExc_IndexError, "the trace has fewer packed calls");
    return -1;
}

/* live_results(begin, end) -> the results of packed calls whose Vars exist */
static PyObject *live_results(PyObject *object, PyObject *args) {
    CallList *self = (CallList *)object;
    PyObject *found;
    Py_ssize_t begin, end, i;
    npy_int32 k;
    if (parse_range(self, args, &begin, &end) < 0) return NULL;
    found = PyList_New(0);
    for (i = begin; found != NULL && i < end; i++) {
        const Kind *kind = packed_kind(self, i);
        for (k = 0; found != NULL && k < kind->results; k++) {
            const LiveVar *entry = live_at(self, slots_of(self, i)[kind->operands + k]);
            if (entry != NULL && PyList_Append(found, entry->var) < 0) Py_CLEAR(found);
        }
    }
    return found;
}

/* find(var) -> its slot, or -1 */
static PyObject *find_var(PyObject *self, PyObject *var) {
    if (Py_TYPE(var) != var_type) {
        PyErr_SetString(PyExc_TypeError, "expected a Var");
        return NULL;
    }
    return PyLong_FromLong(find_slot((CallList *)self, var));
}

/* variable(slot) -> the Var of a slot */
static PyObject *variable_of_slot(PyObject *self, PyObject *slot) {
    long i = PyLong_AsLong(slot);
    if (i == -1 && PyErr_Occurred()) return NULL;
    if (i < 0 || i >= count_slots((CallList *)self)) {
        PyErr_SetString(PyExc_IndexError, "the trace has fewer arrays");
        return NULL;
    }
    return variable_at((CallList *)self, (npy_int32)i);
}

/* Return the last one of some packed calls that computes a slot, or -1. */
static Py_ssize_t packed_producer(const CallList *self, npy_int32 slot, Py_ssize_t begin, Py_ssize_t end) {
    npy_int32 k;
    while (end-- > begin) {
        const Kind *kind = packed_kind(self, end);
        for (k = 0; k < kind->results; k++) {
            if (slots_of(self, end)[kind->operands + k] == slot) return end;
        }
    }
    return -1;
}

/* producer(var) -> the index of the call that computes a Var, or -1 */
static PyObject *producer_of(PyObject *object, PyObject *var) {
    CallList *self = (CallList *)object;
    npy_int32 slot, k;
    Py_ssize_t i;
    if (Py_TYPE(var) != var_type) {
        PyErr_SetString(PyExc_TypeError, "expected a Var");
        return NULL;
    }
    for (i = PyList_GET_SIZE(self->unpacked) - 1; i >= 0; i--) {
        PyObject *call = PyList_GET_ITEM(self->unpacked, i), *results = Py_TYPE(call) == call_type ? SLOT(call, call_results) : NULL;
        if (results == NULL || !PyTuple_CheckExact(results)) continue;
        for (k = 0; k < PyTuple_GET_SIZE(results); k++) {
            if (PyTuple_GET_ITEM(results, k) == var) return PyLong_FromSsize_t(count_packed(self) + i);
        }
    }
    slot = find_slot(self, var);
    return PyLong_FromSsize_t(slot < 0 ? -1 : packed_producer(self, slot, 0, count_packed(self)));
}

/* result_with_number(number, begin, end) -> the result of one of these packed calls with a number, or None */
static PyObject *result_with_number(PyObject *object, PyObject *args) {
    CallList *self = (CallList *)object;
    const Variables *v = &self->e.variables;
    long long number;
    Py_ssize_t begin, end;
    npy_int32 slot;
    if (!PyArg_ParseTuple(args, "Lnn", &number, &begin, &end)) return NULL;
    slot = number >= 0 && number < v->numbers ? v->by_number[number] : -1;
    if (begin < 0) begin = 0;
    if (end > count_packed(self)) end = count_packed(self);
    if (slot >= 0 && packed_producer(self, slot, begin, end) >= 0) return variable_at(self, slot);
    Py_RETURN_NONE;
}

/* -- the arrays of EncodedCalls */

typedef struct {
    npy_int32 *numbers; /* the new number of each old one, or -1 */
    npy_int32 count;
} Renumbering;

static int start_renumbering(Renumbering *r, npy_intp count) {
    r->count = 0;
    r->numbers = PyMem_Malloc((size_t)(count + 1) * sizeof(npy_int32));
    if (r->numbers == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    memset(r->numbers, 0xFF, (size_t)(count + 1) * sizeof(npy_int32));
    return 0;
}

/* Return the new number. *is_new: whether it is the first time */
static npy_int32 renumbered(Renumbering *r, npy_int32 old, int *is_new) {
    *is_new = r->numbers[old] < 0;
    if (*is_new) r->numbers[old] = r->count++;
    return r->numbers[old];
}

typedef struct {
    Buffer slots, number, layout, address, starts, operands, result_starts, results, forms, signatures, flags, first, ufunc_forms, other_forms, hashes;
} RangeArrays;

/* Return the index of a slot among those of a range, to which it is added if it is new. `local[slot]` is valid only if `slots[local[slot]]` is the slot. */
static npy_int32 local_index(CallList *self, RangeArrays *arrays, npy_int32 slot) {
    const Variables *v = &self->e.variables;
    const LiveVar *entry = live_at(self, slot);
    npy_int32 found = self->local[slot];
    npy_int64 number = ints(&v->number)[slot], address = ((npy_int64 *)v->address.bytes)[slot];
    if (found >= 0 && found < count_ints(&arrays->slots) && ints(&arrays->slots)[found] == slot) return found;
    if (entry != NULL) {
        number = PyLong_AsLongLong(SLOT(entry->var, var_number));
        address = array_of_var(entry->var) == NULL ? 0 : (npy_int64)(size_t)PyArray_DATA((PyArrayObject *)array_of_var(entry->var));
    }
    found = (npy_int32)count_ints(&arrays->slots);
    if (append_int(&arrays->slots, slot) < 0 || append_long(&arrays->number, number) < 0 || append_int(&arrays->layout, ints(&v->layout)[slot]) < 0 || append_long(&arrays->address, address) < 0) return -1;
    return self->local[slot] = found;
}

static int encode_packed(CallList *self, RangeArrays *arrays, Renumbering *ufuncs, Renumbering *others, Renumbering *signatures, npy_intp i, npy_int32 at) {
    const Kind *kind = packed_kind(self, i);
    const npy_int32 *slots = slots_of(self, i);
    npy_int32 k, form, signature;
    int is_new;
    for (k = 0; k < kind->operands + kind->results; k++) {
        npy_int32 local = local_index(self, arrays, slots[k]);
        if (local < 0 || append_int(k < kind->operands ? &arrays->operands : &arrays->results, local) < 0) return -1;
    }
    if (append_int(&arrays->starts, (npy_int32)count_ints(&arrays->operands)) < 0 || append_int(&arrays->result_starts, (npy_int32)count_ints(&arrays->results)) < 0) return -1;
    if (kind->form >= 0) {
        form = renumbered(ufuncs, kind->form, &is_new);
        if (is_new && (append_int(&arrays->ufunc_forms, at) < 0 || append_bytes(&arrays->hashes, (npy_int64 *)self->e.ufunc_calls.hashes.bytes + kind->form, sizeof(npy_int64)) < 0)) return -1;
    } else {
        form = -1 - renumbered(others, -1 - kind->form, &is_new);
        if (is_new && append_int(&arrays->other_forms, at) < 0) return -1;
    }
    signature = renumbered(signatures, kind->signature, &is_new);
    if (is_new && append_int(&arrays->first, at) < 0) return -1;
    return append_int(&arrays->forms, form) < 0 || append_int(&arrays->signatures, signature) < 0 ? -1 : append_bytes(&arrays->flags, &kind->flags, 1);
}

/* encode(begin, end) -> slots, then the attributes of EncodedCalls, in order, of some packed calls */
static PyObject *encode_range(PyObject *object, PyObject *args) {
    CallList *self = (CallList *)object;
    Py_ssize_t begin, end, i;
    RangeArrays a;
    Renumbering ufuncs = {NULL, 0}, others = {NULL, 0}, signatures = {NULL, 0};
    Buffer *buffers[] = {&a.slots, &a.number, &a.layout, &a.address, &a.starts, &a.operands, &a.result_starts, &a.results, &a.forms, &a.signatures, &a.flags, &a.first, &a.ufunc_forms, &a.other_forms, &a.hashes};
    PyObject *encoded = NULL;
    size_t k;
    int failed;
    if (parse_range(self, args, &begin, &end) < 0) return NULL;
    memset(&a, 0, sizeof a);
    if (self->local_count < count_slots(self)) {
        npy_int32 *local = PyMem_Realloc(self->local, (size_t)count_slots(self) * sizeof *local);
        if (local == NULL) return PyErr_NoMemory();
        memset(local + self->local_count, 0, (size_t)(count_slots(self) - self->local_count) * sizeof *local);
        self->local = local;
        self->local_count = count_slots(self);
    }
    failed = start_renumbering(&ufuncs, self->e.ufunc_calls.count) < 0 || start_renumbering(&others, count_ints(&self->e.other_forms)) < 0 || start_renumbering(&signatures, self->e.distinct.count) < 0;
    failed = failed || append_int(&a.starts, 0) < 0 || append_int(&a.result_starts, 0) < 0;
    for (i = begin; i < end && !failed; i++) failed = encode_packed(self, &a, &ufuncs, &others, &signatures, i, (npy_int32)(i - begin)) < 0;
    number_ufunc_forms_last(&a.forms, others.count);
    if (!failed && a.ufunc_forms.length > 0) failed = append_bytes(&a.other_forms, a.ufunc_forms.bytes, a.ufunc_forms.length) < 0;
    if (!failed) {
        encoded = Py_BuildValue(
            "NNNNNNNNNNNNNN", int_array(&a.slots), to_numpy(&a.number, NPY_INT64, 8), int_array(&a.layout), to_numpy(&a.address, NPY_INT64, 8), int_array(&a.starts), int_array(&a.operands), int_array(&a.result_starts), int_array(&a.results), int_array(&a.forms), int_array(&a.signatures), to_numpy(&a.flags, NPY_UINT8, 1), int_array(&a.first), int_array(&a.other_forms), to_numpy(&a.hashes, NPY_INT64, 8));
    }
    for (k = 0; k < sizeof buffers / sizeof *buffers; k++) PyMem_Free(buffers[k]->bytes);
    PyMem_Free(ufuncs.numbers);
    PyMem_Free(others.numbers);
    PyMem_Free(signatures.numbers);
    return encoded;
}

static PyObject *layouts_of_list(PyObject *self, void *unused) {
    (void)unused;
    return Py_NewRef(((CallList *)self)->e.variables.layout_indices);
}

static PyObject *bytes_of_list(PyObject *object, void *unused) {
    const CallList *self = (const CallList *)object;
    const Variables *v = &self->e.variables;
    (void)unused;
    return PyLong_FromSize_t(self->kinds.length + self->starts.length + self->slots.length + self->live_index.length + v->number.length + v->layout.length + v->address.length + (size_t)v->numbers * sizeof(npy_int32));
}

static PyMethodDef call_list_methods[] = {
    {"append", append_to_list, METH_O, "append(call): append a call"},
    {"packed", count_packed_calls, METH_NOARGS, "packed(): the number of packed calls"},
    {"encode", encode_range, METH_VARARGS, "encode(begin, end): some packed calls as integer arrays"},
    {"live_results", live_results, METH_VARARGS, "live_results(begin, end): the results of packed calls whose Vars exist"},
    {"find", find_var, METH_O, "find(var): the slot of a Var, or -1"},
    {"producer", producer_of, METH_O, "producer(var): the index of the call that computes a Var, or -1"},
    {"variable", variable_of_slot, METH_O, "variable(slot): the Var of a slot"},
    {"result_with_number", result_with_number, METH_VARARGS, "result_with_number(number, begin, end): the result of one of these packed calls with a number, or None"},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef call_list_attributes[] = {
    {"layouts", layouts_of_list, NULL, "{(shape, strides, dtype): index} of the arrays of packed calls", NULL},
    {"nbytes", bytes_of_list, NULL, "the bytes of the rows of packed calls, without their kinds", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PySequenceMethods call_list_sequence = {.sq_length = length_of_list, .sq_item = item_of_list};
static PyMappingMethods call_list_mapping = {.mp_length = length_of_list, .mp_subscript = items_of_list, .mp_ass_subscript = set_items_of_list};

static PyTypeObject call_list_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "chainrule._src.native._loops.CallList",
    .tp_doc = "CallList(find_form): the calls of a trace, most of them as integers.",
    .tp_basicsize = sizeof(CallList),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = new_call_list,
    .tp_dealloc = free_call_list,
    .tp_traverse = traverse_call_list,
    .tp_clear = clear_call_list,
    .tp_methods = call_list_methods,
    .tp_getset = call_list_attributes,
    .tp_as_sequence = &call_list_sequence,
    .tp_as_mapping = &call_list_mapping,
};

int add_call_list(PyObject *module) {
    if (PyType_Ready(&call_list_type) < 0 || add_reserved_memory(module) < 0) return -1;
    return PyModule_AddObjectRef(module, "CallList", (PyObject *)&call_list_type);
}
