/* Eager operations in C: what eager_kernels.c (numbers), tape.c (nodes and tensors), primitive.c (a row of the table: its value and
   its rules as programs of loops), operation.c (what users call) and sweep.c (the backward pass) share.

   Python says what is computed, and is the reference: every function here does what a Python one does, in the ordinary case,
   and leaves the rest to that by the same call. None knows an operation by name.

   Everything needs the GIL. A result of 0 (or NULL without an error) says "not for us", before anything was changed.

   References. A caller holds its arguments for the whole call. An object that was read from a slot, list, dict or cache and is used
   after other code may have run is held by a reference of our own (Py_NewRef). Other code may run in each call, warning, and release of
   an arbitrary object, and (by the garbage collector of Python 3.11) in each allocation of a tuple, list, dict, node or tensor. Lists are
   copied to tuples before their items are used. Caches get their new content before the old content is released. */

#ifndef CHAINRULE_EAGER_H
#define CHAINRULE_EAGER_H

#include "runner.h"

#include <numpy/ufuncobject.h>

/* elements up to which a loop is called here; beyond, NumPy's ufunc (or SharedUfunc) does it, and lets other threads run */
#define DIRECT_MOST 8192

/* bytes up to which a saved array is copied: COPIED of tape/versions.py */
#define COPIED 65536

#ifdef _MSC_VER
#define THREAD_LOCAL __declspec(thread)
#else
#define THREAD_LOCAL _Thread_local
#endif

#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

/* Python's classes, the places of their slots, and what nodes are made with. Set once, by connect(). */
typedef struct {
    PyTypeObject *tensor, *node, *output, *leaf, *freed, *view, *where, *written, *cut_type, *primitive;
    PyObject *local, *watches, *modes[3]; /* a thread's mode: as usual; nothing is recorded; nor is that worth a note */
    PyObject *unread, *user_line, *no_grad, *writes, *before_write; /* see messages/places.py, tape/versions.py */
    PyObject *special, *user_files, *note_frame, *counter, *clock, *no_params, *getframe, *nothing;
    Py_ssize_t raw, edge, cut, grad, tensor_view, views;                                        /* of Tensor */
    Py_ssize_t prim, pullback, params, edges, saved, in_avals, hooks, seq, code, lasti;         /* of Node */
    Py_ssize_t output_node, output_index, output_edges, output_seq, output_hooks;               /* of Output */
    Py_ssize_t leaf_tensor, leaf_grad, leaf_hooks, leaf_added, leaf_passes, leaf_seq;                 /* of Leaf */
    Py_ssize_t view_base, view_last, view_origin, view_before;                                  /* of View */
    Py_ssize_t latest;                                                                          /* of the clock of writes */
    Py_ssize_t written_count, written_times, written_last;                                      /* of Written */
    Py_ssize_t where_code, where_lasti, cut_kind, cut_sources, cut_where;                       /* of Where, of Cut */
    Py_ssize_t prim_pullback, prim_op, prim_tied, prim_kind, prim_listed, prim_save_from, prim_name; /* of Primitive */
    PyArray_Descr *dtypes[3]; /* float, double, bool */
    int enabled;               /* 0: Python does everything */
} Core;
extern Core core;

/* what this thread does with its operations. UNUSUAL: what Python has to do, as where it is watched; or -1 error */
enum { SLOW_PATH, RECORDS, NO_GRAD, SILENT };
int special_mode(void);
/* whether the ordinary case is ours at all, and which */
static inline int current_mode(void) { return !core.enabled ? SLOW_PATH : PyList_GET_SIZE(core.special) == 0 ? RECORDS : special_mode(); }
static inline int is_fast_path(void) { return core.enabled && PyList_GET_SIZE(core.special) == 0; }

/* have warnings name the user's line, until leave_located is given the token (NULL where nothing has to be left). -1 with an error */
int enter_error_state(PyObject **token);
void leave_error_state(PyObject *token);
/* The error state of a backward pass. enter_lazily() enters it once; it is left at the end of the pass and while the user's code runs. */
typedef struct {
    int in_backward;    /* whether this thread runs a backward pass */
    PyObject *token; /* owned; NULL until enter_lazily() */
} PassErrorState;
PassErrorState begin_pass_error_state(int in_backward); /* returns the state before, for end_lazy() */
void end_pass_error_state(PassErrorState before);
int enter_pass_error_state(void);
int in_sweep(void);
/* call Python; what NumPy warns of in it names the user's line (operation.c) */
PyObject *call_in_error_state(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames);
PyObject *call_dict_in_error_state(PyObject *callable, PyObject *const *args, size_t nargs, PyObject *params);
/* warn of floating-point exceptions, or raise, as NumPy is told to: -1 with an error */
int report_exceptions(const char *name, int found);

/* ---- eager_kernels.c */

typedef struct {
    InnerLoop fn;
    void *data;
} Loop;

/* what computes a value: a ufunc, whose loops are used for small arrays, or any function */
typedef struct {
    PyObject *value, *ufunc; /* what is called; whose loops these are, NULL if it is none of NumPy's */
    Loop kernels[2];           /* for arrays of float, of double */
    int gives_mask;          /* the result is bool */
    int exact;               /* the result of each element is the one that IEEE 754 asks for, however the arrays lie */
} Function;

int read_function(Function *function, PyObject *value, int nin);
void clear_function(Function *function);
int visit_function(const Function *function, visitproc visit, void *arg);
/* the value for raw operands: ndarrays, exact floats or ints, with at least one array. A new reference to an ndarray */
PyObject *apply_function(const Function *function, int nin, PyObject *const *raw, int into); /* into: written into the first of them */
PyObject *as_array(PyObject *result); /* takes over; a NumPy scalar becomes an array without dimensions */
/* run a loop; the floating-point exceptions it raised */
int run_loop(Loop loop, char **args, npy_intp n, const npy_intp *strides);

static inline int is_number(PyObject *x) { return PyFloat_CheckExact(x) || PyLong_CheckExact(x); }
/* 0 for an array of float, 1 of double, -1 for anything else */
static inline int kind_of(PyObject *x) {
    PyArray_Descr *dtype;
    if (x == NULL || !PyArray_CheckExact(x)) return -1;
    dtype = PyArray_DESCR((PyArrayObject *)x);
    return dtype == core.dtypes[1] ? 1 : dtype == core.dtypes[0] ? 0 : -1;
}
static inline int is_mask(PyObject *x) { return PyArray_CheckExact(x) && PyArray_DESCR((PyArrayObject *)x) == core.dtypes[2]; }
PyObject *new_array(int kind, int ndim, const npy_intp *dims); /* kind: 2 for a mask */
PyObject *array_of(PyObject *number, int kind); /* of a Python number, without dimensions; NULL without an error where NumPy has something to say about it */
PyObject *aval_of(PyObject *array);               /* (shape, dtype) */
PyObject *aval_tuple_of(PyObject *array);           /* ((shape, dtype),) */
PyObject *sum_all(PyObject *x);                   /* np.add.reduce over everything */
PyObject *sum_rows(PyObject *g, PyObject *aval);/* np.add.reduce over the first axis, down to (shape, dtype) */
/* sums of the middle one of three axes, to `outer` rows of `inner`; the floating-point exceptions it raised */
int sum_middle_axis(int kind, const char *operands, char *to, npy_intp outer, npy_intp n, npy_intp inner, npy_intp size);
PyObject *add_arrays(PyObject *x, PyObject *y); /* x + y, of one dtype and shape */
PyObject *add_into(PyObject *x, PyObject *y);   /* x += y; x again */
int add_in_place(PyObject *x, PyObject *y);     /* x += y, of one dtype and shape, small and contiguous; the floating-point exceptions it raised */

/* a program: a function of arrays of one dtype as a list of loops, whose intermediate results stay here */
enum { INPUTS = 8, CONSTANTS = 8, MAX_STEPS = 24, VALUES = INPUTS + CONSTANTS + MAX_STEPS };
enum { ELEMENTS, SUMS, MAXIMA, CORES }; /* of a step: elements; sums or maxima of rows, or the loop of a gufunc of rows */
typedef struct {
    Loop loop;
    PyObject *ufunc;                 /* keeps the loop alive; NULL for a loop of eager_kernels.c */
    PyObject *operation, *reflected; /* the same on tensors, which records; where the first operand is a number: on the others, the number last */
    int nin, operands[3], size, exact, slot; /* size: bytes of an element of the result; slot: where it is kept */
    int step_kind;                            /* how it goes along the last axis: see below */
} Step;
typedef struct {
    int nsteps, nconstants, nslots, reads, inexact, result, kind, masks; /* reads, masks: bits of the inputs; inexact: of those that a step reads that is not exact; result: the number of a value; kind: of all inputs and of the result */
    Step *steps;
    int along_last_axis; /* whether it goes along the last axis */
    npy_intp max_size; /* elements up to which it serves */
    double constants[CONSTANTS]; /* each holds a float or a double, by `kind` */
    PyObject *numbers[CONSTANTS]; /* the same as Python has them */
} Program;
/* fill from (steps, constants, result, most); 1, or -1 with an error */
int fill_program(Program *program, PyObject *traced, int kind, int masks, PyObject *operations);
void clear_program(Program *program);
/* `shape`: an array of the result's; NULL without an error where Python has to do it, as where something overflows */
PyObject *run_program(const Program *program, PyObject *shape, PyObject *const *inputs, int ninputs);

/* ---- tape.c */

/* where a node says that it was made: at a code and instruction, or in the frame that is `depth` frames up */
typedef struct {
    PyObject *code, *lasti;
    int depth;
} SourceLocation;
extern const SourceLocation current_frame;

/* Note the user's source location in two slots of an object, as messages.places.note_frame does. */
int note_location(PyObject *object, Py_ssize_t code_slot, Py_ssize_t lasti_slot, SourceLocation location);
/* Find where the slots of a Python class are. The list ends with a name of NULL. -1 with an error */
typedef struct {
    const char *name;
    Py_ssize_t *offset;
} SlotOffset;
int find_slots(PyTypeObject *type, const SlotOffset *slots);

/* A node at the end of the tape (takes over edges, saved and in_avals, also where one of them is NULL and there will be none),
   and a tensor (takes over data and edge). pullback: NULL for None. */
PyObject *new_node(PyObject *prim, PyObject *pullback, PyObject *params, PyObject *edges, PyObject *saved, PyObject *in_avals, SourceLocation location);
PyObject *new_tensor(PyObject *data, PyObject *edge, PyObject *cut);
/* What an operation gives that is not recorded, as core.dispatch._unrecorded: a tensor (takes over data). */
PyObject *unrecorded_result(PyObject *data, PyObject *prim, PyObject *const *args, Py_ssize_t n, int mode, SourceLocation location);
PyObject *new_cut(PyObject *kind, PyObject *const *args, Py_ssize_t n, SourceLocation location);
PyObject *user_line(SourceLocation location); /* a Where, or None */
int view_of(PyObject *tensor, PyObject *base, PyObject *prim, PyObject *params, int mode); /* have the tensor be a view of the other */

/* ---- primitive.c */

enum { NO_REDUCTION, SUM, MEAN };          /* Op.reduction */
enum { NO_JOIN, CONCATENATE, STACK };       /* Op.join_kind */
#define PRODUCT_NDIMS(x, y) (10 * (x) + (y)) /* Op.product_ndims, from the numbers of axes of both operands: tape/eager.py */

#define MAX_SAVED 4
typedef struct Variant Variant;

/* a row of the table: what it saves, and its value and its rules as programs, once they were asked for */
typedef struct {
    PyObject_HEAD
    PyObject *prim;
    Function value;
    int nin, nsaves, saved_index[MAX_SAVED], saved_users[MAX_SAVED];      /* what: an operand, -1 the result; users: bits of the operands whose rules read it */
    int records, elementwise, variadic, needs_avals, view; /* records: 0 where results never have a derivative */
    int along_axis;                                             /* one operand, and an axis: its programs go along the last */
    int reduction, product_ndims, join_kind;                        /* 1 a sum, 2 a mean; 10 times the axes of the first of two that are multiplied, and those of the other; 1 along an axis, 2 along a new one */
    Variant **variants;
    int nvariants;
} Op;

Op *op_of(PyObject *prim);  /* a new reference; NULL without an error where there is none */
int all_axes(PyObject *params, int ndim); /* whether a reduction's parameters reduce everything to one number */
PyObject *op_value(Op *op, PyObject *const *raw, int n, PyObject *params);
PyObject *saved_of(const Op *op, PyObject *const *raw, PyObject *const *edges, int n, PyObject *result);
PyObject *avals_of(const Op *op, PyObject *const *raw, int n, PyObject *result);
/* What bind gives for tensors of arrays and numbers; `out`: the value, or NULL; mode: as mode_now(). NULL without an error
   where Python has to do it. */
PyObject *record(PyObject *prim, PyObject *const *args, Py_ssize_t n, PyObject *params, PyObject *out, int mode, SourceLocation location);

PyObject *record_as(PyObject *prim, PyObject *const *args, Py_ssize_t n, PyObject *params, PyObject *out, int views, int mode, SourceLocation location); /* views: remember what the result is a view of */
int is_constant(PyObject *x);                                               /* a plain array among the operands */
int protect(PyObject *saved, PyObject *const *raw, int plain, Py_ssize_t n); /* have copies of plain operands saved; plain: bits of the operands */

/* grads, one for each edge that is not None: 1 done, 0 Python has to do it, -1 error */
int run_rule(PyObject *node, PyObject *g, PyObject *saved, PyObject *edges, PyObject **grads);
int record_rule(PyObject *node, PyObject *g, PyObject *saved, PyObject *edges, PyObject **grads, SourceLocation location);
#define MAX_RULE_OPERANDS 16 /* of an operation whose rule runs here */

/* ---- structural.c: NULL (or 0) without an error where Python has to do it */

#define MAX_OP_OPERANDS 16
PyObject *sum_axes(PyObject *x, PyObject *params);
int mean_count(PyObject *x, PyObject *params, npy_intp *n); /* of how many numbers each is the sum */
PyObject *broadcast_axes(PyObject *g, PyObject *aval, PyObject *params);
int has_plain_strides(PyObject *x);
PyObject *join_arrays(PyObject *const *raw, int n, PyObject *params, int new_axis);
int split_cotangent(PyObject *g, PyObject *avals, PyObject *edges, PyObject *params, int new_axis, PyObject **grads);

/* ---- operation.c */

#define MAX_ELEMENTWISE_OPERANDS 3
/* What an elementwise operation is called with. The arrays and edges are ours while others may run. */
typedef struct {
    PyObject *raw[MAX_ELEMENTWISE_OPERANDS], *edges[MAX_ELEMENTWISE_OPERANDS];
    int count, recorded, constants; /* constants: bits of those that are plain arrays */
} Operands;
/* a node of a row and these operands; `result` is their value */
PyObject *node_of(Op *op, PyObject *prim, const Operands *operands, PyObject *params, PyObject *result, SourceLocation location);

/* What an operation gives on tensors; NULL without an error where Python has to do it. */
PyObject *operate(PyObject *operation, PyObject *const *args, int nargs, SourceLocation location);
int is_operation(PyObject *object);

PyObject *unwrap_array(PyObject *x); /* the tensor of an Array, borrowed; anything else itself */

/* ---- dispatch_cache.c */

enum { MAX_KEY_WORDS = 160, MAX_CALL_OPERANDS = 16 };
/* A call as the key of a cache, with its tensors and plain arrays (owned until drop_call). */
typedef struct {
    long long words[MAX_KEY_WORDS];
    PyObject *function, *operands[MAX_CALL_OPERANDS]; /* about: the function, held by the caller */
    int n, noperands, recorded;
} CallKey;
typedef struct DispatchCache DispatchCache;

DispatchCache *new_cache(void);
void free_cache(DispatchCache *cache);
int visit_cache(const DispatchCache *cache, visitproc visit, void *arg);
/* named: a dict, or a tuple of the names of the last arguments. Returns 0 where there is no key. The caller drops the call in any case. */
int read_call_key(CallKey *key, PyObject *function, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords);
void drop_call_key(CallKey *key);
int is_same_key(const CallKey *x, const CallKey *y);
int find_entry(DispatchCache *cache, const CallKey *key, PyObject **entry); /* way: a new reference, or NULL. Returns 1 if the call came once before and has no entry yet. */
void store_entry(DispatchCache *cache, const CallKey *key, PyObject *entry);
int is_entry(PyObject *entry, Py_ssize_t n);
PyObject *replay(PyObject *entry, PyObject *const *operands, int n);          /* a tensor; NULL without an error where Python has to do it */

/* ---- index.c */

/* A tensor at an index; NULL without an error where Python has to do it. basic, at_places: the rows that it is recorded by; numpy: as in
   NumPy's face, else in PyTorch's. */
PyObject *index_tensor(PyObject *basic, PyObject *at_positions, PyObject *tensor, PyObject *index, int numpy, int mode);

/* ---- inplace.c: the tensor that was written into; NULL without an error where Python has to do it */

int may_write(PyObject *tensor, int mode, int replaced); /* whether a write into a tensor is ordinary. replaced: it may get another history */
/* An elementwise row's value, written into its first operand. `label`: what it is called in the record of writes; direct: outside the
   tape it is one call of a ufunc. */
PyObject *operate_in_place(Op *op, PyObject *prim, PyObject *label, int direct, PyObject *const *args, Operands *operands, int mode);
PyObject *assign(PyObject *label, PyObject *target, PyObject *value, int number, int mode); /* a number, or another tensor's elements */
int connect_writes(PyObject *wrote, PyObject *record, PyObject *lock, PyObject *lender);

extern PyType_Spec operation_spec, op_spec;
extern PyMethodDef tape_functions[], sweep_functions[], op_functions[], operation_functions[];
int add_operation_constants(PyObject *module);
int connect_values(PyObject *plus);
int connect_ops(PyObject *make_row, PyObject *trace_value, PyObject *trace_rule, PyObject *unbroadcast, PyObject *operations, PyObject *guarded);

#endif
