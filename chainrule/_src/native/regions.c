/* Regions: runs of elementwise nodes of a backward pass, computed block by block. sweep.c selects the nodes.

   On arrays that exceed the first cache, an elementwise VJP rule takes as long as memory traffic for its operands and results. In a region, element
   i of each cotangent depends on element i of the others only. The kernel calls of all rules therefore run on one block of elements after the
   other, and threads share the blocks. Cotangents inside the region are in scratch memory. Only cotangents that leave the region get arrays.

   The kernel calls are those of the rules' programs, and sums have the order of a plain pass, so the bits are the same. If a floating-point
   exception occurs that the user has not switched off, nothing is changed, and the nodes run one by one: NumPy's warnings then name their lines. */

#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "eager.h"

#include <stdint.h>

enum { MAX_NODES = 64, MAX_REGION_STEPS = 512, MAX_REGION_VALUES = 1024, MAX_EDGES = 160, MAX_SLOTS = 32 };
enum { BLOCK_UNIT = 512, MAX_BLOCK = 4096 }; /* elements; multiples of all vector lengths, so that blocks have the bits of whole arrays */
enum { CACHED_BYTES = 32768, GAP = 832 };    /* bytes: the slots of a block; between slots, so that equal offsets are on different lines of the cache */
enum { EXTERNAL = -1, RESULT = -2 };         /* RegionValue.slot */

#if defined(_WIN32) /* a single thread: pool.c */
#define ADD_BITS(to, bits) (*(to) |= (bits))
#else
#define ADD_BITS(to, bits) __atomic_fetch_or(to, bits, __ATOMIC_RELAXED)
#endif

typedef struct {
    PyObject *array; /* owned: the array of an EXTERNAL value or of a RESULT */
    char *data;      /* its elements, or the number of an EXTERNAL value without an array */
    double number;   /* as float or double */
    npy_intp stride; /* 0: all elements are equal */
    int slot, last;  /* slot: of scratch memory, EXTERNAL or RESULT; last: index of the last step that reads the value */
} RegionValue;

typedef struct {
    Loop loop;
    int nin, size, operands[3], result; /* size: bytes of an element of the result */
} RegionStep;

typedef struct {
    PyObject *edge;        /* borrowed: the graph holds it */
    int value, is_member;  /* value: index of its cotangent */
} RegionEdge;

struct NodeRegion {
    PyArrayObject *like; /* an array of the region's shape and dtype */
    int kind, nnodes, nsteps, nvalues, nedges, nslots;
    PyObject *ops[MAX_NODES]; /* hold the programs */
    RegionStep steps[MAX_REGION_STEPS];
    RegionValue values[MAX_REGION_VALUES];
    RegionEdge edges[MAX_EDGES];
};

NodeRegion *new_region(PyObject *g) {
    NodeRegion *region;
    if (kind_of(g) < 0 || (region = PyMem_Malloc(sizeof(NodeRegion))) == NULL) return NULL;
    region->like = (PyArrayObject *)Py_NewRef(g);
    region->kind = kind_of(g);
    region->nnodes = region->nsteps = region->nvalues = region->nedges = region->nslots = 0;
    return region;
}

void free_region(NodeRegion *region) {
    int i;
    for (i = 0; i < region->nvalues; i++) Py_XDECREF(region->values[i].array);
    for (i = 0; i < region->nnodes; i++) Py_DECREF(region->ops[i]);
    Py_DECREF(region->like);
    PyMem_Free(region);
}

static RegionEdge *find_edge(NodeRegion *region, PyObject *edge) {
    int i;
    for (i = region->nedges - 1; i >= 0; i--) { /* often one of the last */
        if (region->edges[i].edge == edge) return &region->edges[i];
    }
    return NULL;
}

int leads_to(NodeRegion *region, PyObject *edge) { return find_edge(region, edge) != NULL; }

/* ---- checks, which change nothing */

/* Whether an array has the region's shape, and its elements follow each other or are all equal. */
static int fits(const NodeRegion *region, PyObject *x) {
    PyArrayObject *array = (PyArrayObject *)x;
    return (kind_of(x) == region->kind || is_mask(x)) && PyArray_SAMESHAPE(array, region->like) && (PyArray_ISCARRAY_RO(array) || (PyArray_ISBEHAVED_RO(array) && is_single_element(array)));
}

/* Whether the kernels of a program give the same bits block by block. `arrays`: bits of the inputs with different elements */
static int runs_in_blocks(const NodeRegion *region, const Program *program, int arrays) {
    int different[VALUES] = {0}, i, k;
    if (program->along_last_axis || PyArray_SIZE(region->like) > program->max_size) return 0;
    for (i = 0; i < INPUTS; i++) different[i] = arrays >> i & 1;
    for (i = 0; i < program->nsteps; i++) {
        const Step *step = &program->steps[i];
        int result = 0;
        for (k = 0; k < step->nin; k++) result |= different[step->operands[k]];
        if (!step->threads || (!step->exact && !result)) return 0; /* NumPy may use another algorithm for a single number */
        different[INPUTS + CONSTANTS + i] = result;
    }
    return 1;
}

/* Whether the inputs that programs read have the region's layout. Sets the bits of those with different elements. */
static int inputs_fit(const NodeRegion *region, const Inputs *inputs, int reads, int *arrays) {
    double number;
    int i;
    for (i = 1; i < inputs->count; i++) {
        PyObject *x = inputs->values[i];
        if (!(reads >> i & 1)) continue;
        if (is_number(x)) {
            if (!read_number(x, region->kind, &number)) return 0;
        } else if (!fits(region, x)) {
            return 0;
        } else if (PyArray_ISCARRAY_RO((PyArrayObject *)x)) {
            *arrays |= 1 << i;
        }
    }
    return reads >> inputs->count == 0;
}

/* ---- values and steps */

static int add_value(NodeRegion *region, int slot, PyObject *array, npy_intp stride) {
    region->values[region->nvalues] = (RegionValue){Py_XNewRef(array), array == NULL ? NULL : PyArray_BYTES((PyArrayObject *)array), 0, stride, slot, -1};
    return region->nvalues++;
}

static int add_array(NodeRegion *region, PyObject *x) {
    PyArrayObject *array = (PyArrayObject *)x;
    return add_value(region, EXTERNAL, x, PyArray_ISCARRAY_RO(array) ? PyArray_ITEMSIZE(array) : 0);
}

static int add_number(NodeRegion *region, double number) {
    int i = add_value(region, EXTERNAL, NULL, 0);
    region->values[i].number = number;
    return i;
}

static int add_step(NodeRegion *region, Loop loop, int nin, const int *operands, int size) {
    RegionStep *step = &region->steps[region->nsteps++];
    int k;
    *step = (RegionStep){loop, nin, size, {0}, 0};
    for (k = 0; k < nin; k++) step->operands[k] = operands[k];
    step->result = add_value(region, 0, NULL, size);
    return step->result;
}

/* Append the steps of a program, and return the index of its result. `given`: indices of the inputs, -1 for those not yet added */
static int add_program(NodeRegion *region, const Program *program, const Inputs *inputs, int *given) {
    int index[VALUES], i, k;
    if (program->result == 0) return given[0];
    for (i = 0; i < inputs->count; i++) {
        double number = 0;
        if (program->reads >> i & 1 && given[i] < 0) {
            if (is_number(inputs->values[i])) {
                read_number(inputs->values[i], region->kind, &number);
                given[i] = add_number(region, number);
            } else {
                given[i] = add_array(region, inputs->values[i]);
            }
        }
        index[i] = given[i];
    }
    for (i = 0; i < program->nconstants; i++) index[INPUTS + i] = add_number(region, program->constants[i]);
    for (i = 0; i < program->nsteps; i++) {
        const Step *step = &program->steps[i];
        int operands[3];
        for (k = 0; k < step->nin; k++) operands[k] = index[step->operands[k]];
        index[INPUTS + CONSTANTS + i] = add_step(region, step->loop, step->nin, operands, step->size);
    }
    return index[program->result];
}

static RegionEdge *add_region_edge(NodeRegion *region, PyObject *edge, int value) {
    region->edges[region->nedges] = (RegionEdge){edge, value, 0};
    return &region->edges[region->nedges++];
}

int append_to_region(NodeRegion *region, PyObject *node, PyObject *edges, PyObject *const *pending) {
    const Program *programs[MAX_RULE_OPERANDS] = {NULL};
    Inputs inputs;
    RegionEdge *own = find_edge(region, node);
    PyObject *op = NULL;
    Py_ssize_t i, n = PyTuple_GET_SIZE(edges);
    int given[INPUTS] = {0}, reads = 0, nsteps = (int)n, nvalues = 2 * (int)n + 1, arrays, done;
    if (region->nnodes == MAX_NODES || region->nedges + n + 1 > MAX_EDGES || (own == NULL && (pending[0] == NULL || !fits(region, pending[0])))) return 0;
    done = rule_programs(node, (PyObject *)region->like, edges, &op, &inputs, programs);
    if (done != 1) return done;
    arrays = own != NULL || PyArray_ISCARRAY_RO((PyArrayObject *)pending[0]);
    for (i = 0; i < n; i++) reads |= programs[i] == NULL ? 0 : programs[i]->reads;
    done = inputs_fit(region, &inputs, reads, &arrays);
    for (i = 0; i < n && done == 1; i++) {
        if (programs[i] == NULL) continue;
        done = runs_in_blocks(region, programs[i], arrays) && (pending[1 + i] == NULL || leads_to(region, PyTuple_GET_ITEM(edges, i)) || fits(region, pending[1 + i]));
        nsteps += programs[i]->nsteps;
        nvalues += programs[i]->nsteps + programs[i]->nconstants;
    }
    if (done != 1 || region->nsteps + nsteps > MAX_REGION_STEPS || region->nvalues + nvalues + inputs.count > MAX_REGION_VALUES) {
        drop_inputs(&inputs);
        Py_DECREF(op);
        return 0;
    }
    if (own == NULL) own = add_region_edge(region, node, add_array(region, pending[0]));
    own->is_member = 1;
    given[0] = own->value;
    for (i = 1; i < inputs.count; i++) given[i] = -1;
    for (i = 0; i < n; i++) {
        PyObject *edge = PyTuple_GET_ITEM(edges, i);
        RegionEdge *to;
        int both[2];
        if (programs[i] == NULL) continue;
        both[1] = add_program(region, programs[i], &inputs, given);
        to = find_edge(region, edge);
        if (to == NULL && pending[1 + i] == NULL) {
            add_region_edge(region, edge, both[1]);
            continue;
        }
        if (to == NULL) to = add_region_edge(region, edge, add_array(region, pending[1 + i]));
        both[0] = to->value;
        to->value = add_step(region, addition(region->kind), 2, both, region->kind ? 8 : 4);
    }
    region->ops[region->nnodes++] = op;
    drop_inputs(&inputs);
    return 1;
}

/* ---- running a region */

/* Give each intermediate value a slot of scratch memory, which is free again after the last step that reads the value. 0: too many slots */
static int assign_region_slots(NodeRegion *region) {
    int busy_until[MAX_SLOTS], i, k;
    for (i = 0; i < MAX_SLOTS; i++) busy_until[i] = -1;
    for (i = 0; i < region->nsteps; i++) {
        for (k = 0; k < region->steps[i].nin; k++) region->values[region->steps[i].operands[k]].last = i;
    }
    for (i = 0; i < region->nsteps; i++) {
        RegionValue *result = &region->values[region->steps[i].result];
        if (result->slot == RESULT) continue;
        for (k = 0; k < MAX_SLOTS && busy_until[k] >= i; k++) {}
        if (k == MAX_SLOTS) return 0;
        result->slot = k;
        busy_until[k] = result->last > i ? result->last : i;
        if (k >= region->nslots) region->nslots = k + 1;
    }
    return 1;
}

/* Make the array of each cotangent that leaves the region. */
static int make_results(NodeRegion *region) {
    int i;
    for (i = 0; i < region->nedges; i++) {
        RegionValue *value = &region->values[region->edges[i].value];
        if (region->edges[i].is_member || value->array != NULL) continue;
        value->array = new_array(region->kind, PyArray_NDIM(region->like), PyArray_DIMS(region->like));
        if (value->array == NULL) return 0;
        value->data = PyArray_BYTES((PyArrayObject *)value->array);
        value->slot = RESULT;
    }
    return 1;
}

typedef struct {
    const NodeRegion *region;
    npy_intp n, block, slot_bytes;
    int *exceptions;
} RegionRun;

static void run_blocks(const void *context, npy_intp first, npy_intp last, char *scratch) {
    const RegionRun *run = context;
    const NodeRegion *region = run->region;
    npy_intp start = first * run->block, end = last * run->block < run->n ? last * run->block : run->n;
    int i, k, exceptions = 0;
    for (; start < end; start += run->block) {
        npy_intp n = end - start < run->block ? end - start : run->block;
        for (i = 0; i < region->nsteps; i++) {
            const RegionStep *step = &region->steps[i];
            npy_intp strides[4], count = n;
            char *args[4];
            for (k = 0; k <= step->nin; k++) {
                const RegionValue *value = &region->values[k < step->nin ? step->operands[k] : step->result];
                strides[k] = value->stride;
                args[k] = value->slot >= 0 ? scratch + value->slot * run->slot_bytes : value->data + start * value->stride;
            }
            step->loop.fn(args, &count, strides, step->loop.data);
            exceptions |= take_exceptions(); /* after each step, because some kernels clear earlier exceptions */
        }
    }
    if (exceptions) ADD_BITS(run->exceptions, exceptions);
}

/* Whether the user's error state handles one of the exceptions, or cannot be read. */
static int is_handled(int exceptions) {
    static const struct {
        const char *name;
        int bit;
    } kinds[] = {{"divide", 1}, {"over", 2}, {"under", 4}, {"invalid", 8}};
    PyObject *numpy = PyImport_ImportModule("numpy"), *modes = numpy == NULL ? NULL : PyObject_CallMethod(numpy, "geterr", NULL);
    int i, found = modes == NULL || !PyDict_Check(modes);
    for (i = 0; i < 4 && !found; i++) {
        PyObject *mode = PyDict_GetItemString(modes, kinds[i].name);
        found = exceptions & kinds[i].bit && (mode == NULL || !PyUnicode_Check(mode) || PyUnicode_CompareWithASCIIString(mode, "ignore") != 0);
    }
    Py_XDECREF(numpy);
    Py_XDECREF(modes);
    PyErr_Clear();
    return found;
}

int run_region(NodeRegion *region) {
    RegionRun run = {region, PyArray_SIZE(region->like), 0, 0, NULL};
    npy_intp size = region->kind ? 8 : 4;
    int i, exceptions = 0;
    char *block = NULL, *scratch = NULL;
    if (!make_results(region)) {
        PyErr_Clear(); /* Python will run out of memory as well */
        return 0;
    }
    if (!assign_region_slots(region)) return 0;
    for (i = 0; i < region->nsteps; i++) size = region->steps[i].size > size ? region->steps[i].size : size; /* a float32 rule may compute in float64 */
    for (i = 0; i < region->nvalues; i++) {
        RegionValue *value = &region->values[i];
        if (value->slot == EXTERNAL && value->array == NULL) value->data = (char *)&value->number;
    }
    run.exceptions = &exceptions;
    run.block = CACHED_BYTES / (size * (region->nslots + 1)) / BLOCK_UNIT * BLOCK_UNIT;
    if (run.block < BLOCK_UNIT) run.block = BLOCK_UNIT;
    if (run.block > MAX_BLOCK) run.block = MAX_BLOCK;
    run.slot_bytes = run.block * size + GAP; /* with a gap: some loops take adjacent arrays for overlapping ones */
    if (region->nslots > 0) {
        block = PyMem_RawMalloc((size_t)(region->nslots * run.slot_bytes + 64));
        if (block == NULL) return 0;
        scratch = (char *)(((uintptr_t)block + 63) & ~(uintptr_t)63);
    }
    if (region->nsteps > 0) {
        Py_BEGIN_ALLOW_THREADS
        clear_exceptions();
        parallel_for(run_blocks, &run, (run.n + run.block - 1) / run.block, (double)run.n * region->nsteps, region->nslots * run.slot_bytes, scratch);
        Py_END_ALLOW_THREADS
    }
    PyMem_RawFree(block);
    return !exceptions || !is_handled(exceptions);
}

int leaving_edges(const NodeRegion *region) { return region->nedges; }

PyObject *take_cotangent(NodeRegion *region, int i, PyObject **edge, int *is_new) {
    RegionValue *value = &region->values[region->edges[i].value];
    PyObject *array = value->array;
    *edge = region->edges[i].edge;
    *is_new = value->slot == RESULT;
    if (region->edges[i].is_member) return NULL;
    for (i--; i >= 0 && *is_new; i--) { /* the cotangent of two edges */
        if (!region->edges[i].is_member && region->values[region->edges[i].value].array == array) return PyArray_NewCopy((PyArrayObject *)array, NPY_CORDER);
    }
    return Py_NewRef(array);
}
