/* The interpreter of compiled programs. A program is an array of npy_intp words, read front to back. code.py writes and documents it.

   KERNEL, one kernel call, or one for each index of `nouter` outer dimensions:
       0 KERNEL, 1 words of the step, 2 function, 3 its data, 4 nargs, 5 ncore, 6 nstrides, 7 nouter, 8 flags (SPLIT, CHECKED), 9 n,
       ncore core dimensions, nstrides strides (one for each argument, then those of the core dimensions),
       nargs x (base, offset), nouter x (length, nargs strides), outermost first

   GROUP, elementwise kernels over `rows` rows of n elements, one block of rows after the other:
       0 GROUP, 1 words of the step, 2 nsteps, 3 rows, 4 rows of a block, 5 n, 6 split, 7 scratch bytes,
       nsteps x (words, function, data, nargs, flat, elements of a call, calls of a row, nargs strides, nargs x (base, offset, advance, row),
                 nargs strides from call to call)

   LOOP_BODY, steps that run `count` times, with moving bases (loop_executor.c):
       0 LOOP_BODY, 1 words of the step, 2 count, 3 nmoving, 4 index of the first moving base,
       nmoving x (source base, stride, ring buffer length or 0, first ring buffer index), the steps */

#include "loops.h"

#include <fenv.h>

/* A fast check of the SSE flags. Only long double sets flags elsewhere. */
#if defined(__x86_64__) || defined(_M_X64)
#include <xmmintrin.h>
#define MAYBE_EXCEPTIONS() ((_mm_getcsr() & (_MM_EXCEPT_INVALID | _MM_EXCEPT_DIV_ZERO | _MM_EXCEPT_OVERFLOW | _MM_EXCEPT_UNDERFLOW)) != 0)
#else
#define MAYBE_EXCEPTIONS() 1
#endif

enum { KERNEL, GROUP, LOOP_BODY };
enum { STEP_KIND, STEP_WORDS, KERNEL_FN, KERNEL_DATA, KERNEL_NARGS, KERNEL_NCORE, KERNEL_NSTRIDES, KERNEL_NOUTER, KERNEL_FLAGS, KERNEL_N, KERNEL_HEAD = 9 };
enum { SPLIT = 1, CHECKED = 2 }; /* KERNEL_FLAGS */
enum { GROUP_NSTEPS = 2, GROUP_ROWS, GROUP_BLOCK, GROUP_N, GROUP_SPLIT, GROUP_SCRATCH, GROUP_HEAD };
enum { MEMBER_WORDS, MEMBER_FN, MEMBER_DATA, MEMBER_NARGS, MEMBER_FLAT, MEMBER_N, MEMBER_REPEATS, MEMBER_HEAD };
enum { BASE, OFFSET, ADVANCE, ROW_STRIDE };
enum { SCRATCH_BASE = 1 }; /* bases[0] is the arena, bases[1] the scratch memory of the thread */

/* number of elements from which threads share a step */
#define PARALLEL_FROM 32768

/* ---- floating-point exceptions */

void clear_exceptions(void) { feclearexcept(FE_ALL_EXCEPT); }

int read_exceptions(void) {
    int exceptions = fetestexcept(FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID);
    if (exceptions == 0) return 0;
    return (exceptions & FE_DIVBYZERO ? 1 : 0) | (exceptions & FE_OVERFLOW ? 2 : 0) | (exceptions & FE_UNDERFLOW ? 4 : 0) |
           (exceptions & FE_INVALID ? 8 : 0);
}

/* ---- rows */

/* Call a kernel for `count` rows that are `steps` bytes apart. Kernels may change their pointers. Programs have many short rows, so calls with
   two or three arguments keep the row pointers in registers. */
static void call_rows(InnerLoop fn, void *data, const npy_intp *dims, const npy_intp *strides, npy_intp nargs, char *const *start, const npy_intp *row_strides, npy_intp count) {
    char *args[MAX_ARGS];
    npy_intp i, k;
    if (nargs == 2) {
        char *x = start[0], *out = start[1];
        for (i = 0; i < count; i++, x += row_strides[0], out += row_strides[1]) {
            args[0] = x, args[1] = out;
            fn(args, dims, strides, data);
        }
    } else if (nargs == 3) {
        char *x = start[0], *y = start[1], *out = start[2];
        for (i = 0; i < count; i++, x += row_strides[0], y += row_strides[1], out += row_strides[2]) {
            args[0] = x, args[1] = y, args[2] = out;
            fn(args, dims, strides, data);
        }
    } else {
        for (i = 0; i < count; i++) {
            for (k = 0; k < nargs; k++) args[k] = start[k] + i * row_strides[k];
            fn(args, dims, strides, data);
        }
    }
}

/* ---- KERNEL */

/* The decoded words of a KERNEL step. */
typedef struct {
    InnerLoop fn;
    void *data;
    npy_intp nargs, nouter;
    const npy_intp *dims, *strides, *args, *outer;
} KernelStep;

static KernelStep read_kernel(const npy_intp *step) {
    KernelStep kernel;
    kernel.fn = (InnerLoop)step[KERNEL_FN];
    kernel.data = (void *)step[KERNEL_DATA];
    kernel.nargs = step[KERNEL_NARGS];
    kernel.nouter = step[KERNEL_NOUTER];
    kernel.dims = step + KERNEL_N;
    kernel.strides = kernel.dims + 1 + step[KERNEL_NCORE];
    kernel.args = kernel.strides + step[KERNEL_NSTRIDES];
    kernel.outer = kernel.args + 2 * kernel.nargs;
    return kernel;
}

/* Call the kernel at each index of the outer dimensions from `axis` on. */
static void call_outer(const KernelStep *kernel, char *const *start, npy_intp axis, npy_intp length) {
    const npy_intp *strides = kernel->outer + axis * (1 + kernel->nargs) + 1;
    char *pointers[MAX_ARGS];
    npy_intp i, k, nargs = kernel->nargs;
    if (axis + 1 == kernel->nouter) {
        call_rows(kernel->fn, kernel->data, kernel->dims, kernel->strides, nargs, start, strides, length);
        return;
    }
    for (k = 0; k < nargs; k++) pointers[k] = start[k];
    for (i = 0; i < length; i++) {
        call_outer(kernel, pointers, axis + 1, strides[nargs]);
        for (k = 0; k < nargs; k++) pointers[k] += strides[k];
    }
}

/* A KERNEL step whose first outer dimension is split among threads. */
typedef struct {
    KernelStep call;
    char *start[MAX_ARGS];
} ParallelKernel;

static void run_kernel_range(const void *context, npy_intp first, npy_intp last, char *scratch) {
    const ParallelKernel *kernel = context;
    char *pointers[MAX_ARGS];
    npy_intp k;
    (void)scratch;
    for (k = 0; k < kernel->call.nargs; k++) pointers[k] = kernel->start[k] + first * kernel->call.outer[1 + k];
    call_outer(&kernel->call, pointers, 0, last - first);
}

/* Estimate the number of element operations of a KERNEL step. */
static double kernel_work(const npy_intp *step) {
    KernelStep kernel = read_kernel(step);
    double work = (double)step[KERNEL_N];
    npy_intp k;
    for (k = 0; k < step[KERNEL_NCORE]; k++) work *= (double)kernel.dims[1 + k];
    for (k = 0; k < kernel.nouter; k++) work *= (double)kernel.outer[k * (1 + kernel.nargs)];
    return work;
}

/* Run a kernel that reports failure by an "invalid" exception. Other exceptions are cleared, as NumPy does for these functions. */
static int run_checked(const KernelStep *kernel, char **start) {
    int failed;
    if (MAYBE_EXCEPTIONS()) clear_exceptions();
    if (kernel->nouter == 0) {
        kernel->fn(start, kernel->dims, kernel->strides, kernel->data);
    } else {
        call_outer(kernel, start, 0, kernel->outer[0]);
    }
    failed = fetestexcept(FE_INVALID) ? FAILED : 0;
    if (MAYBE_EXCEPTIONS()) clear_exceptions();
    return failed;
}

static int run_kernel(const npy_intp *step, char *const *bases) {
    ParallelKernel kernel;
    npy_intp k;
    if (step[KERNEL_N] == 0) return 0; /* NumPy's kernels need n > 0 */
    kernel.call = read_kernel(step);
    for (k = 0; k < kernel.call.nargs; k++) kernel.start[k] = bases[kernel.call.args[2 * k]] + kernel.call.args[2 * k + 1];
    if (step[KERNEL_FLAGS] & CHECKED) return run_checked(&kernel.call, kernel.start);
    if (kernel.call.nouter == 0) {
        kernel.call.fn(kernel.start, kernel.call.dims, kernel.call.strides, kernel.call.data);
        return 0;
    }
    if ((step[KERNEL_FLAGS] & SPLIT) && kernel_work(step) >= PARALLEL_FROM) {
        return parallel_for(run_kernel_range, &kernel, kernel.call.outer[0], kernel_work(step), 0, NULL);
    }
    call_outer(&kernel.call, kernel.start, 0, kernel.call.outer[0]);
    return 0;
}

/* ---- GROUP */

typedef struct {
    const npy_intp *step;
    char **bases;
} Group;

static void run_member(const npy_intp *step, char **bases, char *scratch, npy_intp row, npy_intp rows) {
    InnerLoop fn = (InnerLoop)step[MEMBER_FN];
    void *data = (void *)step[MEMBER_DATA];
    npy_intp nargs = step[MEMBER_NARGS], n = step[MEMBER_N], repeats = step[MEMBER_REPEATS], k;
    const npy_intp *strides = step + MEMBER_HEAD, *arg = strides + nargs, *repeat_strides = arg + 4 * nargs;
    npy_intp row_strides[MAX_ARGS];
    char *pointers[MAX_ARGS];
    for (k = 0; k < nargs; k++) {
        char *base = arg[4 * k + BASE] == SCRATCH_BASE ? scratch : bases[arg[4 * k + BASE]];
        pointers[k] = base + arg[4 * k + OFFSET] + row * arg[4 * k + ADVANCE];
        row_strides[k] = arg[4 * k + ROW_STRIDE];
    }
    if (step[MEMBER_FLAT]) {
        npy_intp all = rows * n;
        fn(pointers, &all, strides, data);
        return;
    }
    if (repeats == 1) {
        call_rows(fn, data, &n, strides, nargs, pointers, row_strides, rows);
        return;
    }
    for (; rows > 0; rows--) {
        call_rows(fn, data, &n, strides, nargs, pointers, repeat_strides, repeats);
        for (k = 0; k < nargs; k++) pointers[k] += row_strides[k];
    }
}

/* Run blocks [first, last) of a group. */
static void run_group_range(const void *context, npy_intp first, npy_intp last, char *scratch) {
    const Group *group = context;
    const npy_intp *head = group->step, *step;
    npy_intp block = head[GROUP_BLOCK], rows = head[GROUP_ROWS], k;
    npy_intp row = first * block, end = last * block < rows ? last * block : rows;
    for (; row < end; row += block) {
        npy_intp count = end - row < block ? end - row : block;
        for (k = 0, step = head + GROUP_HEAD; k < head[GROUP_NSTEPS]; k++, step += step[MEMBER_WORDS]) {
            run_member(step, group->bases, scratch, row, count);
        }
    }
}

static double group_work(const npy_intp *step) {
    return (double)step[GROUP_ROWS] * (double)step[GROUP_N] * (double)step[GROUP_NSTEPS];
}

static int run_group(const npy_intp *step, char **bases) {
    npy_intp blocks = (step[GROUP_ROWS] + step[GROUP_BLOCK] - 1) / step[GROUP_BLOCK];
    Group group;
    if (step[GROUP_N] == 0) return 0;
    group.step = step;
    group.bases = bases;
    if (step[GROUP_SPLIT] && (double)step[GROUP_ROWS] * (double)step[GROUP_N] >= PARALLEL_FROM) {
        return parallel_for(run_group_range, &group, blocks, group_work(step), step[GROUP_SCRATCH], bases[SCRATCH_BASE]);
    }
    run_group_range(&group, 0, blocks, bases[SCRATCH_BASE]);
    return 0;
}

/* ---- all steps */

int run_steps(const npy_intp *step, const npy_intp *end, char **bases) {
    int exceptions = 0;
    for (; step < end; step += step[STEP_WORDS]) {
        switch (step[STEP_KIND]) {
        case KERNEL: exceptions |= run_kernel(step, bases); break;
        case GROUP: exceptions |= run_group(step, bases); break;
        default: exceptions |= run_loop_body(step, bases);
        }
        if (exceptions & FAILED) break; /* the caller discards the results */
        if (MAYBE_EXCEPTIONS()) exceptions |= read_exceptions(); /* after each step: maximum, matmul and scipy.special clear earlier exceptions */
    }
    return exceptions;
}

int run_code(const npy_intp *code, npy_intp start, npy_intp stop, char **bases) {
    int exceptions;
    clear_exceptions();
    clear_failed_check();
    exceptions = run_steps(code + start, code + stop, bases);
    return exceptions | read_exceptions();
}

/* ---- checks: malformed words are never run */

static const char *check_args(const npy_intp *args, npy_intp nargs, npy_intp words, npy_intp nbases) {
    npy_intp k;
    for (k = 0; k < nargs; k++) {
        if (args[words * k + BASE] < 0 || args[words * k + BASE] >= nbases) return "an argument's base does not exist";
    }
    return NULL;
}

static const char *check_kernel(const npy_intp *step, npy_intp nbases) {
    npy_intp words, k;
    KernelStep kernel;
    if (step[STEP_WORDS] <= KERNEL_HEAD) return "a kernel call's words end too early";
    if (step[KERNEL_FN] == 0) return "a kernel has no address";
    if (step[KERNEL_NARGS] < 1 || step[KERNEL_NARGS] > MAX_ARGS) return "a kernel has too few or too many arguments";
    if (step[KERNEL_NOUTER] < 0 || step[KERNEL_NOUTER] > MAX_OUTER) return "a kernel call has too many outer dimensions";
    if (step[KERNEL_NCORE] < 0 || step[KERNEL_NCORE] > step[STEP_WORDS]) return "a kernel call's number of core dimensions is wrong";
    if (step[KERNEL_NSTRIDES] < step[KERNEL_NARGS] || step[KERNEL_NSTRIDES] > step[STEP_WORDS]) return "a kernel call's number of strides is wrong";
    words = KERNEL_HEAD + 1 + step[KERNEL_NCORE] + step[KERNEL_NSTRIDES] + 2 * step[KERNEL_NARGS] + step[KERNEL_NOUTER] * (1 + step[KERNEL_NARGS]);
    if (words != step[STEP_WORDS]) return "a kernel call's words do not add up";
    kernel = read_kernel(step);
    if (step[KERNEL_N] < 0) return "a kernel call's dimension is negative";
    for (k = 0; k < step[KERNEL_NCORE]; k++) {
        if (kernel.dims[1 + k] < 0) return "a kernel call's dimension is negative";
    }
    for (k = 0; k < kernel.nouter; k++) {
        if (kernel.outer[k * (1 + kernel.nargs)] < 0) return "a kernel call's dimension is negative";
    }
    return check_args(kernel.args, kernel.nargs, 2, nbases);
}

static const char *check_group(const npy_intp *head, npy_intp nbases) {
    const npy_intp *step = head + GROUP_HEAD, *end = head + head[STEP_WORDS];
    npy_intp k;
    const char *problem;
    if (step > end) return "a group's words end too early";
    if (head[GROUP_BLOCK] < 1 || head[GROUP_ROWS] < 0 || head[GROUP_N] < 0 || head[GROUP_SCRATCH] < 0) return "a group's dimension is negative";
    if (head[GROUP_SCRATCH] > PY_SSIZE_T_MAX / 4) return "a group wants more scratch memory than there can be";
    if (head[GROUP_BLOCK] > PY_SSIZE_T_MAX / 4 || head[GROUP_ROWS] > PY_SSIZE_T_MAX / 4) return "a group has more rows than there can be";
    for (k = 0; k < head[GROUP_NSTEPS]; k++, step += step[MEMBER_WORDS]) {
        if (end - step < MEMBER_HEAD) return "a group's words end too early";
        if (step[MEMBER_FN] == 0) return "a kernel has no address";
        if (step[MEMBER_NARGS] < 1 || step[MEMBER_NARGS] > MAX_ARGS) return "a kernel has too few or too many arguments";
        if (step[MEMBER_N] < 0 || step[MEMBER_REPEATS] < 1) return "a group's dimension is negative";
        if (step[MEMBER_WORDS] != MEMBER_HEAD + 6 * step[MEMBER_NARGS] || end - step < step[MEMBER_WORDS]) return "a group's words do not add up";
        problem = check_args(step + MEMBER_HEAD + step[MEMBER_NARGS], step[MEMBER_NARGS], 4, nbases);
        if (problem != NULL) return problem;
    }
    return step == end ? NULL : "a group's words do not add up";
}

const char *check_steps(const npy_intp *step, const npy_intp *end, npy_intp nbases, CodeStats *stats) {
    const char *problem;
    if (nbases > stats->nbases) stats->nbases = nbases;
    for (; step < end; step += step[STEP_WORDS]) {
        if (end - step < LOOP_BODY_HEAD || step[STEP_WORDS] < 1 || step[STEP_WORDS] > end - step) return "a step's words end too early";
        if (step[STEP_KIND] == KERNEL) {
            problem = check_kernel(step, nbases);
            if (problem != NULL) return problem;
            stats->work += kernel_work(step);
        } else if (step[STEP_KIND] == GROUP) {
            if (end - step < GROUP_HEAD) return "a step's words end too early";
            problem = check_group(step, nbases);
            if (problem != NULL) return problem;
            stats->work += group_work(step);
            if (step[GROUP_SCRATCH] > stats->scratch) stats->scratch = step[GROUP_SCRATCH];
        } else if (step[STEP_KIND] == LOOP_BODY) {
            problem = check_loop_body(step, nbases, stats);
            if (problem != NULL) return problem;
        } else {
            return "a step is not a kernel call, a group or a loop";
        }
    }
    return NULL;
}

const char *check_code(const npy_intp *code, npy_intp start, npy_intp stop, npy_intp nbases, CodeStats *stats) {
    stats->work = 0;
    stats->scratch = 0;
    stats->nbases = nbases;
    return check_steps(code + start, code + stop, nbases, stats);
}
