/* Eager operations in C. Shared by eager_kernels.c (values of ufuncs and programs), tape.c (nodes and tensors), primitive.c (Op: an entry
   of the op table with its value and rules as programs), levels.c (operations on the values of transformations), operation.c (functions that users call) and sweep.c (the backward pass).

   The Python code is the reference. Each function here implements the fast path of a Python function. It contains no code for single
   operations. A result of 0, or NULL without an error, means that nothing was changed and that the caller must take the slow path:
   call the Python function with the same arguments.

   All functions need the GIL.

   References. A caller holds its arguments for the whole call. A function takes its own reference (Py_NewRef) to an object that it read from
   a slot, list, dict or cache if it uses the object after other code may have run. Other code may run in each call, in each warning, in
   each release of an arbitrary object, and (garbage collector of Python 3.11) in each allocation of a tuple, list, dict, node or tensor.
   Lists are copied to tuples before their items are used. Caches get their new content before the old content is released. */

#ifndef CHAINRULE_EAGER_H
#define CHAINRULE_EAGER_H

#include "runner.h"

#include <numpy/ufuncobject.h>

/* Number of elements up to which kernels are called with the GIL, and up to which programs are used */
#define DIRECT_MOST 8192

/* bytes up to which a saved array is copied: COPIED of tape/versions.py */
#define COPIED 65536

#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

/* Python's classes, the offsets of their slots, and objects that nodes are made with. Set once, by connect(). */
typedef struct {
    PyTypeObject *tensor, *node, *output, *leaf, *freed, *view, *where, *written, *cut_type, *primitive;
    PyObject *local, *watches, *modes[3]; /* modes: the modes of a thread: RECORDS, NO_GRAD and SILENT below */
    PyObject *call_untraced, *unread, *user_line, *no_grad, *writes, *before_write; /* see messages/source_locations.py and tape/versions.py */
    PyObject *active_modes, *user_files, *note_frame, *counter, *clock, *no_params, *getframe, *empty_tuple;
    Py_ssize_t raw, edge, cut, grad, tensor_view, views;                                             /* Tensor */
    Py_ssize_t prim, pullback, params, edges, saved, in_avals, hooks, seq, code, lasti;              /* Node */
    Py_ssize_t output_node, output_index, output_edges, output_seq, output_hooks;                    /* Output */
    Py_ssize_t leaf_tensor, leaf_grad, leaf_hooks, leaf_added, leaf_passes, leaf_seq;                /* Leaf */
    Py_ssize_t view_base, view_last, view_origin, view_before;                                       /* View */
    Py_ssize_t latest;                                                                               /* the clock of writes */
    Py_ssize_t written_count, written_times, written_last;                                           /* WriteRecord */
    Py_ssize_t where_code, where_lasti, cut_kind, cut_sources, cut_where;                            /* Where and Cut */
    Py_ssize_t prim_pullback, prim_op, prim_tied, prim_kind, prim_listed, prim_save_from, prim_name, prim_jvp, prim_batch; /* Primitive */
    PyArray_Descr *dtypes[3];                                                                        /* float, double, bool */
    int enabled;                                                                                     /* 0: Python runs all operations */
    PyObject *self_test;                                                                             /* called before the first operation, or NULL */
} Core;
extern Core core;
int run_self_test(void); /* 0, or -1 with an error */

/* The mode of this thread. SLOW_PATH: Python must run operations, for example because a Watch is active. SILENT: as NO_GRAD, but results
   need no note about the missing history. TRACES: `compile` traces the thread, and operations are recorded. -1 with an error */
enum { SLOW_PATH, RECORDS, NO_GRAD, SILENT, TRACES };
int special_mode(void);
PyObject *thread_state(void); /* borrowed: the attributes of this thread, tape.modes.LOCAL.__dict__; NULL with an error */
/* whether the fast path may be used, and in which mode */
static inline int current_mode(void) { return !core.enabled ? SLOW_PATH : PyList_GET_SIZE(core.active_modes) == 0 ? RECORDS : special_mode(); }
static inline int is_fast_path(void) { return core.enabled && PyList_GET_SIZE(core.active_modes) == 0; }

/* Enter the error state in which NumPy's warnings name the user's line. Pass the token (NULL if the state did not change) to
   leave_error_state. -1 with an error */
int enter_error_state(PyObject **token);
/* Enter the error state in which NumPy raises FloatingPointError where it would warn. 1; 0 if this NumPy has no such state; -1 with an error */
int enter_raising_state(PyObject **token);
void leave_error_state(PyObject *token);
/* The error state of a backward pass. enter_pass_error_state() enters it once. It is left at the end of the pass, and while user code runs. */
typedef struct {
    int in_backward; /* whether this thread runs a backward pass */
    PyObject *token; /* owned; NULL until enter_pass_error_state() */
} PassErrorState;
PassErrorState begin_pass_error_state(int in_backward); /* returns the previous state, for end_pass_error_state() */
void end_pass_error_state(PassErrorState before);
int enter_pass_error_state(void);
int in_sweep(void);
/* Call a Python function. NumPy's warnings in it name the user's line (operation.c). */
PyObject *call_in_error_state(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames);
PyObject *call_dict_in_error_state(PyObject *callable, PyObject *const *args, size_t nargs, PyObject *params);
/* Warn of floating-point exceptions, or raise, as NumPy's error state says. -1 with an error */
int report_exceptions(const char *name, int found);

/* ---- aligned_arrays.c */

PyObject *new_array(int kind, int ndim, const npy_intp *dims); /* an uninitialized array in C order. kind: 0 float, 1 double, 2 bool */
/* Return a new array that uses the memory of another one. */
PyObject *view_of_memory(PyObject *of, char *data, int ndim, const npy_intp *dims, const npy_intp *strides, int flags);

/* ---- eager_kernels.c */

typedef struct {
    InnerLoop fn;
    void *data;
} Loop;

/* The function that computes a value: a ufunc, whose kernels are called directly for small arrays, or any other callable. */
typedef struct {
    PyObject *value, *ufunc; /* value: the callable; ufunc: the owner of the kernels, NULL if the callable is not one of NumPy's ufuncs */
    Loop kernels[2];         /* for float and for double */
    int gives_mask;          /* the result is bool */
    int exact;               /* results are correctly rounded, so they do not depend on the memory layout */
    int threads;             /* the kernels run without the GIL and in any thread */
} Function;

int read_function(Function *function, PyObject *value, int nin);
int read_numpy_function(Function *function, const char *name, int nin); /* a ufunc of NumPy; 0, or -1 without an error */
void clear_function(Function *function);
int visit_function(const Function *function, visitproc visit, void *arg);
/* Compute a value of raw operands: ndarrays, exact floats or ints, at least one ndarray. Return a new reference to an ndarray. */
PyObject *apply_function(const Function *function, int nin, PyObject *const *raw, int into); /* into: write the result into the first operand */
PyObject *as_array(PyObject *result); /* steals the reference; converts a NumPy scalar to a 0-d array */
/* Run a kernel and return the floating-point exceptions that it raised. */
int run_loop(Loop loop, char **args, npy_intp n, const npy_intp *strides);
/* Return the floating-point exceptions of this thread, and clear them. */
int take_exceptions(void);
Loop addition(int kind); /* the kernel of np.add */
/* Convert a Python number to float or double (kind 0 or 1); 0 if NumPy would warn or raise. */
int read_number(PyObject *number, int kind, void *target);
/* Whether all elements have the same address, as in a broadcast number. */
int is_single_element(PyArrayObject *x);

static inline int is_number(PyObject *x) { return PyFloat_CheckExact(x) || PyLong_CheckExact(x); }
/* 0 for an array of float, 1 for double, -1 for any other object */
static inline int kind_of(PyObject *x) {
    PyArray_Descr *dtype;
    if (x == NULL || !PyArray_CheckExact(x)) return -1;
    dtype = PyArray_DESCR((PyArrayObject *)x);
    return dtype == core.dtypes[1] ? 1 : dtype == core.dtypes[0] ? 0 : -1;
}
static inline int is_mask(PyObject *x) { return PyArray_CheckExact(x) && PyArray_DESCR((PyArrayObject *)x) == core.dtypes[2]; }
PyObject *array_of(PyObject *number, int kind);                /* a 0-d array of a Python number; NULL without an error if NumPy would warn or raise */
PyObject *aval_of(PyObject *array);                            /* (shape, dtype) */
PyObject *aval_tuple_of(PyObject *array);                      /* ((shape, dtype),) */
PyObject *sum_all(PyObject *x);                                /* np.add.reduce over all axes */
PyObject *sum_rows(PyObject *g, PyObject *aval);               /* np.add.reduce over the first axis, to the given (shape, dtype) */
/* Sum (outer, n, inner) over the middle axis. Return the floating-point exceptions. */
int sum_middle_axis(int kind, const char *operands, char *to, npy_intp outer, npy_intp n, npy_intp inner, npy_intp size);
PyObject *add_arrays(PyObject *x, PyObject *y); /* x + y, of equal dtype and shape */
PyObject *add_into(PyObject *x, PyObject *y);   /* x += y; returns x */
int add_in_place(PyObject *x, PyObject *y);     /* x += y, of equal dtype and shape, small and contiguous; returns the floating-point exceptions */

/* A program: a function of arrays of one dtype as a list of kernel calls. Intermediate results stay in C. */
enum { INPUTS = 8, CONSTANTS = 8, MAX_STEPS = 24, VALUES = INPUTS + CONSTANTS + MAX_STEPS };
enum { ELEMENTS, SUMS, MAXIMA, CORES }; /* Step.step_kind: elementwise; sums or maxima of rows; the inner loop of a gufunc over rows */
typedef struct {
    Loop loop;
    PyObject *ufunc;                         /* keeps the kernel alive; NULL for a kernel of eager_kernels.c */
    PyObject *operation, *reflected;         /* operation: the same step on tensors, which records it; reflected: for a number as first operand, called with the number last */
    int nin, operands[3], size, exact, slot; /* size: bytes of an element of the result; slot: index of the result's buffer */
    int threads;                             /* the kernel runs without the GIL and in any thread */
    int step_kind;                           /* ELEMENTS, SUMS, MAXIMA or CORES */
} Step;
typedef struct {
    /* reads, masks: bits of the inputs; inexact: bits of the inputs of steps that are not exact; result: index of a value; kind: dtype
       of all inputs and the result */
    int nsteps, nconstants, nslots, reads, inexact, result, kind, masks;
    Step *steps;
    int along_last_axis; /* whether some step runs along the last axis */
    npy_intp max_size; /* number of elements up to which the program has the bits of the rule */
    double constants[CONSTANTS]; /* as float or double, by `kind` */
    PyObject *numbers[CONSTANTS]; /* the same as Python objects */
} Program;
/* Fill a program from (steps, constants, result, max_size). 1, or -1 with an error */
int fill_program(Program *program, PyObject *traced, int kind, int masks, PyObject *operations);
void clear_program(Program *program);
/* `shape`: an array of the result's shape. NULL without an error if Python must compute it, for example after an overflow. */
PyObject *run_program(const Program *program, PyObject *shape, PyObject *const *inputs, int ninputs);

/* ---- tape.c */

/* The source location of a node: a code object and an instruction, or else the frame `depth` levels up. */
typedef struct {
    PyObject *code, *lasti;
    int depth;
} SourceLocation;
extern const SourceLocation current_frame;

/* Note the user's source location in two slots of an object, as note_frame of messages/source_locations.py does. */
int note_location(PyObject *object, Py_ssize_t code_slot, Py_ssize_t lasti_slot, SourceLocation location);
PyObject *referent(PyObject *ref); /* borrowed: the object of a weak reference, None if it is freed; NULL with an error */
int find_location(SourceLocation location, PyObject **code, long *lasti); /* the same location, `code` borrowed: 1, 0 if Python must find it, -1 error */
/* Read the offsets of slots of a Python class. The list ends with a NULL name. -1 with an error */
typedef struct {
    const char *name;
    Py_ssize_t *offset;
} SlotOffset;
int find_slots(PyTypeObject *type, const SlotOffset *slots);

/* Make a node at the end of the tape. Steals edges, saved and in_avals, also if one of them is NULL and the call fails.
   pullback: NULL for None. new_tensor steals data and edge. */
PyObject *new_node(PyObject *prim, PyObject *pullback, PyObject *params, PyObject *edges, PyObject *saved, PyObject *in_avals, SourceLocation location);
PyObject *new_tensor(PyObject *data, PyObject *edge, PyObject *cut);
/* Make the result of an operation that is not recorded, as tape.unrecorded.unrecorded_tensors does: a tensor (steals data). */
PyObject *unrecorded_result(PyObject *data, PyObject *prim, PyObject *const *args, Py_ssize_t n, int mode, SourceLocation location);
PyObject *new_cut(PyObject *kind, PyObject *const *args, Py_ssize_t n, SourceLocation location);
PyObject *user_line(SourceLocation location); /* a Where or None */
int view_of(PyObject *tensor, PyObject *base, PyObject *prim, PyObject *params, int mode); /* make the tensor a view of `base` */

/* ---- primitive.c */

enum { NO_REDUCTION, SUM, MEAN };            /* Op.reduction */
enum { BATCH_IN_PYTHON, ALIGN, LEADING };    /* Op.batch_form: the rule is in Python; rules.batching.batch_elementwise; leading_axes */
enum { NO_JOIN, CONCATENATE, STACK };        /* Op.join_kind */
enum { NO_STATISTIC, VARIANCE, DEVIATION, NORM, LOG_SUM_EXP, SCAN_SUM, SCAN_PRODUCT }; /* Op.statistic: moments.c */
#define PRODUCT_NDIMS(x, y) (10 * (x) + (y)) /* Op.product_ndims, from the numbers of axes of both operands: tape/eager.py */

#define MAX_SAVED 4
typedef struct Variant Variant;

/* The C form of a Primitive: its saved operands, and its value and VJP rules as programs, which are traced at first use. */
typedef struct {
    PyObject_HEAD
    PyObject *prim;
    Function value;
    /* saved_index: the operand that is saved, -1 for the result; saved_users: bits of the operands whose VJP rules read the value */
    int nin, nsaves, saved_index[MAX_SAVED], saved_users[MAX_SAVED];
    int records, elementwise, variadic, needs_avals, view; /* records: 0 if results never have a derivative */
    int along_axis;                                        /* one operand and the parameter `axis`: programs run along the last axis */
    int reduction, product_ndims, join_kind, batch_form, statistic; /* see the enums above */
    int multilinear;                                       /* the tangent is the sum of the op applied to each tangent and the other operands */
    Variant **variants;
    int nvariants;
} Op;

/* The inputs of a program, which find_program() reads for the dtype (`kind`), the numbers and the masks. */
typedef struct {
    PyObject *values[INPUTS]; /* owned until drop_inputs() */
    int count, kind, masks, numbers;
} Inputs;
int add_inputs(Inputs *inputs, PyObject *const *values, Py_ssize_t n); /* 0 if there are too many, or their dtypes differ */
int add_parameters(Inputs *inputs, PyObject *params);                  /* the numbers among the parameters */
void drop_inputs(Inputs *inputs);
/* Borrow the program of the value (operand VALUE_OF_OP), of the VJP rule for an operand, or of the JVP rule (TANGENT + bits of the operands with
   a tangent). NULL without an error: slow path. recorded: for values that are not plain arrays, with an operation for each step */
enum { VALUE_OF_OP = -1, TANGENT = 64 };
const Program *find_program(Op *op, int operand, const Inputs *inputs, int broadcast, int recorded, PyObject *params);
PyObject *unbroadcast(PyObject *g, PyObject *aval); /* as rules.rules.unbroadcast; steals g */

Op *op_of(PyObject *prim);                /* a new reference; NULL without an error if the primitive has no Op */
int all_axes(PyObject *params, int ndim); /* whether a reduction's parameters reduce all axes to one number */
PyObject *op_value(Op *op, PyObject *const *raw, int n, PyObject *params);
/* The operands of a node. arrays: their shapes and dtypes; other objects than `raw` in a trace; constants: bits of the plain arrays, which are copied */
typedef struct {
    PyObject *const *raw, *const *edges, *const *arrays;
    Py_ssize_t count;
    int constants;
} NodeOperands;
/* Make the node of an operation with the value `out`. array: has the shape and dtype of `out`. The caller holds the operands. */
PyObject *node_of(const Op *op, PyObject *prim, NodeOperands operands, PyObject *params, PyObject *out, PyObject *array, SourceLocation location);
/* Return the tensor of an operation with the value `out` (steals it), recorded if the operands and the mode require it. views: register it as a
   view if the op makes views. NULL without an error: slow path. */
PyObject *tensor_of_result(const Op *op, PyObject *prim, PyObject *const *args, NodeOperands operands, PyObject *params, PyObject *out, int views, int mode, SourceLocation location);
/* Return the result of dispatch.bind for tensors of arrays and numbers. `out`: the value if it is known, or NULL; mode: from current_mode(). With TRACES
   the tensors hold traced values, and `out` is not used. NULL without an error: slow path. */
PyObject *record(PyObject *prim, PyObject *const *args, Py_ssize_t n, PyObject *params, PyObject *out, int mode, SourceLocation location);

/* trace.c: borrow the array of a tensor, in a trace that of its traced value; NULL where operations on the tensor take the slow path */
PyObject *array_of_tensor(PyObject *tensor, int mode);
/* trace.c: in a trace, run the VJP rules of a node (1 done, 0 Python must do it, -1 error; grads: one for each edge that is not None), and add
   two cotangents (NULL without an error: Python must do it). pass: has the source location of the backward pass */
int trace_rules(PyObject *node, PyObject *g, PyObject *saved, PyObject *edges, PyObject *pass, PyObject **grads);
PyObject *sum_traced(PyObject *x, PyObject *y, PyObject *pass);
int is_traced(PyObject *x);
/* trace.c: the number of calls in the trace of this thread (-1: calls are not appended in C), and the removal of the calls from an index on */
Py_ssize_t trace_length(void);
void truncate_trace(Py_ssize_t begin);
/* traced_operations.c: the same on tensors of traced values */
PyObject *record_traced(Op *op, PyObject *prim, PyObject *const *args, Py_ssize_t n, PyObject *params, int views);

/* views: register the result as a view of its operand */
PyObject *record_as(PyObject *prim, PyObject *const *args, Py_ssize_t n, PyObject *params, PyObject *out, int views, int mode, SourceLocation location);
int is_constant(PyObject *x); /* whether an operand is a plain array of a supported dtype */

/* grads: one for each edge that is not None. 1 done, 0 slow path, -1 error */
int run_rule(PyObject *node, PyObject *g, PyObject *saved, PyObject *edges, PyObject **grads);
int record_rule(PyObject *node, PyObject *g, PyObject *saved, PyObject *edges, PyObject **grads, SourceLocation location);
#define MAX_RULE_OPERANDS 16 /* operands of an op whose VJP rules run in C */

/* Find the programs of the VJP rules of an elementwise node whose operands have the result's shape and dtype, one for each edge that is not None.
   g: an array like the cotangent. The programs live as long as `op`, a new reference. 1 done, 0 slow path, -1 error */
int rule_programs(PyObject *node, PyObject *g, PyObject *edges, PyObject **op, Inputs *inputs, const Program **programs);

/* ---- regions.c */

typedef struct NodeRegion NodeRegion;
NodeRegion *new_region(PyObject *g); /* for nodes with cotangents like g; NULL without an error if there can be none */
void free_region(NodeRegion *region);
int leads_to(NodeRegion *region, PyObject *edge); /* whether a node of the region has this edge */
/* Append a node. pending: the cotangents that the node and its edges have already, or NULL. The edges and nodes are borrowed.
   1 done, 0 if the region cannot contain the node, -1 error */
int append_to_region(NodeRegion *region, PyObject *node, PyObject *edges, PyObject *const *pending);
/* Compute the cotangents that leave the region: 1 done, 0 if the nodes must run one by one */
int run_region(NodeRegion *region);
int leaving_edges(const NodeRegion *region);
/* Return a new reference to the cotangent of edge `i`, in the order of the first contributions; NULL without an error for an edge to a node of the
   region. is_new: whether it was allocated here */
PyObject *take_cotangent(NodeRegion *region, int i, PyObject **edge, int *is_new);
/* ---- levels.c: NULL (or 0) without an error: slow path */

int is_level_value(PyObject *x);                      /* whether x is a Dual or a Batched */
int float_kind_of(PyObject *x);                       /* kind_of() of an array, a Dual or a Batched */
int is_mask_value(PyObject *x);                       /* is_mask() of the same */
PyObject *dtype_of_value(PyObject *x);                /* borrowed; NULL for other objects */
PyObject *shape_of_value(PyObject *x);                /* a new tuple reference */
int ndim_of_value(PyObject *x);                       /* the number of axes; 0 for a number */
int same_aval(PyObject *value, PyObject *aval);       /* whether a Dual or Batched has this (shape, dtype) */
/* As dispatch.bind, for operands among which is a Dual or Batched, or a tensor with such data. */
PyObject *bind_levels(PyObject *prim, PyObject *const *args, Py_ssize_t n, PyObject *params, int mode, SourceLocation location);
/* The VJP rules of a node, if g or a saved value is a Dual or Batched. 1 done, 0 slow path, -1 error */
int run_level_rule(PyObject *node, PyObject *g, PyObject *saved, PyObject *edges, PyObject **grads);
PyObject *add_levels(PyObject *x, PyObject *y);       /* x + y */

/* ---- structural.c: NULL (or 0) without an error: slow path */

#define MAX_OP_OPERANDS 16
PyObject *sum_axes(PyObject *x, PyObject *params);
/* adjacent axes, first <= axis < end */
typedef struct {
    int first, end, keepdims;
} Axes;
/* Read the axes of a reduction, which parameters count from the end, in order. 1, 0 if they are not adjacent, -1 error. */
int read_axes(PyObject *params, int ndim, Axes *axes);
int read_axis(PyObject *params, int *axis); /* the only parameter: an axis from the end */
int reduced_shape(PyArrayObject *x, Axes axes, npy_intp *dims); /* fill the shape of a reduction's result, and return its number of dimensions */
int mean_count(PyObject *x, PyObject *params, npy_intp *n); /* the number of elements in each sum */
PyObject *broadcast_axes(PyObject *g, PyObject *aval, PyObject *params);
int has_plain_strides(PyObject *x);
PyObject *join_arrays(PyObject *const *raw, int n, PyObject *params, int new_axis);
int split_cotangent(PyObject *g, PyObject *avals, PyObject *edges, PyObject *params, int new_axis, PyObject **grads);

/* ---- moments.c */

/* Compute the value of an op by its kind (Op.statistic). NULL without an error: slow path. */
PyObject *statistic(int statistic_kind, PyObject *x, PyObject *params);

/* ---- operation.c */

#define MAX_ELEMENTWISE_OPERANDS 3
/* The operands of an elementwise operation. The arrays and edges are held while other code may run. */
typedef struct {
    PyObject *raw[MAX_ELEMENTWISE_OPERANDS], *edges[MAX_ELEMENTWISE_OPERANDS];
    int count, recorded, constants; /* constants: bits of the plain arrays */
} Operands;
static inline NodeOperands node_operands(const Operands *operands) { return (NodeOperands){operands->raw, operands->edges, operands->raw, operands->count, operands->constants}; }

/* Run an operation on tensors. NULL without an error: slow path. */
PyObject *operate(PyObject *operation, PyObject *const *args, int nargs, SourceLocation location);
int is_operation(PyObject *object);
PyObject *prim_of_operation(PyObject *object); /* borrowed: the op of an elementwise operation, or NULL */

PyObject *unwrap_array(PyObject *x); /* borrow the tensor of an Array; return any other object unchanged */

/* ---- dispatch_cache.c */

enum { MAX_KEY_WORDS = 256, MAX_CALL_OPERANDS = 16 };
/* The cache key of a call, with its tensors and plain arrays (owned until drop_call_key). */
typedef struct {
    long long words[MAX_KEY_WORDS];
    PyObject *function, *operands[MAX_CALL_OPERANDS]; /* function: held by the caller */
    int n, noperands, operand_type, recorded, mode;
} CallKey;
typedef struct DispatchCache DispatchCache;

DispatchCache *new_cache(void);
void free_cache(DispatchCache *cache);
int visit_cache(const DispatchCache *cache, visitproc visit, void *arg);
/* keywords: a dict, or a tuple of the names of the last arguments; arrays: the operands are Arrays and plain arrays, in any argument, and not the
   Tensors of the first argument. Return 0 if the call has no key. The caller drops the key in any case. */
int read_call_key(CallKey *key, PyObject *function, PyObject *const *args, Py_ssize_t nargs, PyObject *keywords, int arrays, int mode);
void drop_call_key(CallKey *key);
int is_same_key(const CallKey *x, const CallKey *y);
/* entry: a new reference, or NULL. Return 1 if the call was seen once before and has no entry yet. */
int find_entry(DispatchCache *cache, const CallKey *key, PyObject **entry);
void store_entry(DispatchCache *cache, const CallKey *key, PyObject *entry);
int is_entry(PyObject *entry, Py_ssize_t n);
/* Return a tensor, or a tuple of tensors. NULL without an error: slow path. */
PyObject *replay(PyObject *entry, PyObject *const *operands, int n, int mode);

/* ---- index.c */

/* Index a tensor. NULL without an error: slow path. basic, at_positions: the ops that record basic and integer-array indexing;
   numpy: as in the NumPy-style API, else as in the PyTorch-style API. */
PyObject *index_tensor(PyObject *basic, PyObject *at_positions, PyObject *tensor, PyObject *index, int numpy, int mode);

/* ---- inplace.c: functions return the tensor that was written; NULL without an error: slow path */

int may_write(PyObject *tensor, int mode, int replaced); /* whether the fast path may write to a tensor; replaced: the write may replace its history */
/* Write the value of an elementwise op into its first operand. `label`: name in the record of writes; direct: if nothing is recorded, one
   ufunc call writes into the tensor. */
PyObject *operate_in_place(Op *op, PyObject *prim, PyObject *label, int direct, PyObject *const *args, Operands *operands, int mode);
PyObject *assign(PyObject *label, PyObject *target, PyObject *value, int number, int mode); /* value: a number, or a tensor whose elements are copied */
int connect_writes(PyObject *wrote, PyObject *record, PyObject *lock, PyObject *lender);

extern PyType_Spec operation_spec, op_spec;
extern PyMethodDef tape_functions[], sweep_functions[], op_functions[], operation_functions[], level_functions[];
int add_operation_constants(PyObject *module);
int connect_values(PyObject *plus);
int connect_ops(PyObject *make_op, PyObject *trace_value, PyObject *trace_rule, PyObject *trace_tangent, PyObject *unbroadcast, PyObject *operations, PyObject *protected_function);

#endif
