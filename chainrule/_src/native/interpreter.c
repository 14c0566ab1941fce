/* The interpreter of a program's code: npy_intp words, read front to back. code.py writes them, and documents them.

   LOOP, one call of an inner loop, or one for each index of `nouter` outer dimensions:
       0 LOOP, 1 words of the step, 2 loop, 3 its data, 4 nargs, 5 ncore, 6 nstrides, 7 nouter, 8 split + 2 checked, 9 n,
       ncore core dimensions, nstrides strides (one for each argument, then those of the core dimensions),
       nargs x (base, offset), nouter x (length, nargs strides), the outermost first

   GROUP, elementwise loops over `rows` rows of n elements, done for `block` rows after the other:
       0 GROUP, 1 words of the step, 2 nsteps, 3 rows, 4 block, 5 n, 6 split, 7 scratch bytes,
       nsteps x (words, loop, data, nargs, flat, nargs strides, nargs x (base, offset, advance, row))

   ROLLED, steps that are done `count` times, with bases that move (loop_executor.c):
       0 ROLLED, 1 words of the step, 2 count, 3 nmoves, 4 the number of the first of its bases,
       nmoves x (base, step, length of the ring or 0, place in it), the steps */

#include "loops.h"

#include <fenv.h>

/* A quick look: long double alone has flags elsewhere. */
#if defined(__x86_64__) || defined(_M_X64)
#include <xmmintrin.h>
#define MAYBE_EXCEPTIONS() ((_mm_getcsr() & (_MM_EXCEPT_INVALID | _MM_EXCEPT_DIV_ZERO | _MM_EXCEPT_OVERFLOW | _MM_EXCEPT_UNDERFLOW)) != 0)
#else
#define MAYBE_EXCEPTIONS() 1
#endif

enum { LOOP, GROUP, ROLLED };
enum { LOOP_WORDS, LOOP_LENGTH, LOOP_FN, LOOP_DATA, LOOP_NARGS, LOOP_NCORE, LOOP_NSTRIDES, LOOP_NOUTER, LOOP_HOW, LOOP_N, LOOP_HEAD = 9 };
enum { SPLIT = 1, CHECKED = 2 }; /* how a LOOP is run */
enum { GROUP_NSTEPS = 2, GROUP_ROWS, GROUP_BLOCK, GROUP_N, GROUP_SPLIT, GROUP_SCRATCH, GROUP_HEAD };
enum { STEP_LENGTH, STEP_FN, STEP_DATA, STEP_NARGS, STEP_FLAT, STEP_HEAD };
enum { BASE, OFFSET, ADVANCE, ROW };
enum { SCRATCH_BASE = 1 }; /* bases[0] is the arena, bases[1] what a thread needs for a block */

/* elements from which threads share a step */
#define SHARED_FROM 32768

/* ---- floating-point exceptions */

void clear_exceptions(void) { feclearexcept(FE_ALL_EXCEPT); }

int read_exceptions(void) {
    int found = fetestexcept(FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID);
    if (found == 0) return 0;
    return (found & FE_DIVBYZERO ? 1 : 0) | (found & FE_OVERFLOW ? 2 : 0) | (found & FE_UNDERFLOW ? 4 : 0) |
           (found & FE_INVALID ? 8 : 0);
}

/* ---- rows */

/* Call a loop for `count` rows, which lie `steps` apart. Loops may move the pointers they are given. Short rows are many, and
   those of one or two operands keep their pointers in registers. */
static void call_rows(InnerLoop fn, void *data, const npy_intp *dims, const npy_intp *strides, npy_intp nargs, char *const *start, const npy_intp *steps, npy_intp count) {
    char *args[MAX_ARGS];
    npy_intp i, k;
    if (nargs == 2) {
        char *x = start[0], *out = start[1];
        for (i = 0; i < count; i++, x += steps[0], out += steps[1]) {
            args[0] = x, args[1] = out;
            fn(args, dims, strides, data);
        }
    } else if (nargs == 3) {
        char *x = start[0], *y = start[1], *out = start[2];
        for (i = 0; i < count; i++, x += steps[0], y += steps[1], out += steps[2]) {
            args[0] = x, args[1] = y, args[2] = out;
            fn(args, dims, strides, data);
        }
    } else {
        for (i = 0; i < count; i++) {
            for (k = 0; k < nargs; k++) args[k] = start[k] + i * steps[k];
            fn(args, dims, strides, data);
        }
    }
}

/* ---- LOOP */

/* The words of a LOOP by name. */
typedef struct {
    InnerLoop fn;
    void *data;
    npy_intp nargs, nouter;
    const npy_intp *dims, *strides, *args, *outer;
} LoopStep;

static LoopStep read_loop(const npy_intp *step) {
    LoopStep loop;
    loop.fn = (InnerLoop)step[LOOP_FN];
    loop.data = (void *)step[LOOP_DATA];
    loop.nargs = step[LOOP_NARGS];
    loop.nouter = step[LOOP_NOUTER];
    loop.dims = step + LOOP_N;
    loop.strides = loop.dims + 1 + step[LOOP_NCORE];
    loop.args = loop.strides + step[LOOP_NSTRIDES];
    loop.outer = loop.args + 2 * loop.nargs;
    return loop;
}

/* Call the loop at every index of the outer dimensions from `axis` on. */
static void call_outer(const LoopStep *loop, char *const *start, npy_intp axis, npy_intp length) {
    const npy_intp *strides = loop->outer + axis * (1 + loop->nargs) + 1;
    char *at[MAX_ARGS];
    npy_intp i, k, nargs = loop->nargs;
    if (axis + 1 == loop->nouter) {
        call_rows(loop->fn, loop->data, loop->dims, loop->strides, nargs, start, strides, length);
        return;
    }
    for (k = 0; k < nargs; k++) at[k] = start[k];
    for (i = 0; i < length; i++) {
        call_outer(loop, at, axis + 1, strides[nargs]);
        for (k = 0; k < nargs; k++) at[k] += strides[k];
    }
}

/* A LOOP whose first outer dimension threads share. */
typedef struct {
    LoopStep loop;
    char *start[MAX_ARGS];
} SharedLoop;

static void part_of_loop(const void *context, npy_intp first, npy_intp last, char *scratch) {
    const SharedLoop *shared = context;
    char *at[MAX_ARGS];
    npy_intp k;
    (void)scratch;
    for (k = 0; k < shared->loop.nargs; k++) at[k] = shared->start[k] + first * shared->loop.outer[1 + k];
    call_outer(&shared->loop, at, 0, last - first);
}

/* About how many element operations a LOOP does. */
static double loop_work(const npy_intp *step) {
    LoopStep loop = read_loop(step);
    double work = (double)step[LOOP_N];
    npy_intp k;
    for (k = 0; k < step[LOOP_NCORE]; k++) work *= (double)loop.dims[1 + k];
    for (k = 0; k < loop.nouter; k++) work *= (double)loop.outer[k * (1 + loop.nargs)];
    return work;
}

/* A loop that may fail says so by an invalid exception; what NumPy does with it ignores other exceptions, too. */
static int run_checked(const LoopStep *loop, char **start) {
    int failed;
    if (MAYBE_EXCEPTIONS()) clear_exceptions();
    if (loop->nouter == 0) {
        loop->fn(start, loop->dims, loop->strides, loop->data);
    } else {
        call_outer(loop, start, 0, loop->outer[0]);
    }
    failed = fetestexcept(FE_INVALID) ? FAILED : 0;
    if (MAYBE_EXCEPTIONS()) clear_exceptions();
    return failed;
}

static int run_loop(const npy_intp *step, char *const *bases) {
    SharedLoop shared;
    npy_intp k;
    if (step[LOOP_N] == 0) return 0; /* NumPy's loops rely on that */
    shared.loop = read_loop(step);
    for (k = 0; k < shared.loop.nargs; k++) shared.start[k] = bases[shared.loop.args[2 * k]] + shared.loop.args[2 * k + 1];
    if (step[LOOP_HOW] & CHECKED) return run_checked(&shared.loop, shared.start);
    if (shared.loop.nouter == 0) {
        shared.loop.fn(shared.start, shared.loop.dims, shared.loop.strides, shared.loop.data);
        return 0;
    }
    if ((step[LOOP_HOW] & SPLIT) && loop_work(step) >= SHARED_FROM) {
        return run_parts(part_of_loop, &shared, shared.loop.outer[0], loop_work(step), 0, NULL);
    }
    call_outer(&shared.loop, shared.start, 0, shared.loop.outer[0]);
    return 0;
}

/* ---- GROUP */

typedef struct {
    const npy_intp *step;
    char **bases;
} Group;

static void run_step_of_block(const npy_intp *step, char **bases, char *scratch, npy_intp row, npy_intp rows, npy_intp n) {
    InnerLoop fn = (InnerLoop)step[STEP_FN];
    void *data = (void *)step[STEP_DATA];
    npy_intp nargs = step[STEP_NARGS], k;
    const npy_intp *strides = step + STEP_HEAD, *arg = strides + nargs;
    npy_intp steps[MAX_ARGS];
    char *at[MAX_ARGS];
    for (k = 0; k < nargs; k++) {
        char *base = arg[4 * k + BASE] == SCRATCH_BASE ? scratch : bases[arg[4 * k + BASE]];
        at[k] = base + arg[4 * k + OFFSET] + row * arg[4 * k + ADVANCE];
        steps[k] = arg[4 * k + ROW];
    }
    if (step[STEP_FLAT]) {
        npy_intp all = rows * n;
        fn(at, &all, strides, data);
        return;
    }
    call_rows(fn, data, &n, strides, nargs, at, steps, rows);
}

/* Do blocks [first, last) of a group. */
static void part_of_group(const void *context, npy_intp first, npy_intp last, char *scratch) {
    const Group *group = context;
    const npy_intp *head = group->step, *step;
    npy_intp block = head[GROUP_BLOCK], rows = head[GROUP_ROWS], k;
    npy_intp row = first * block, end = last * block < rows ? last * block : rows;
    for (; row < end; row += block) {
        npy_intp count = end - row < block ? end - row : block;
        for (k = 0, step = head + GROUP_HEAD; k < head[GROUP_NSTEPS]; k++, step += step[STEP_LENGTH]) {
            run_step_of_block(step, group->bases, scratch, row, count, head[GROUP_N]);
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
    if (step[GROUP_SPLIT] && (double)step[GROUP_ROWS] * (double)step[GROUP_N] >= SHARED_FROM) {
        return run_parts(part_of_group, &group, blocks, group_work(step), step[GROUP_SCRATCH], bases[SCRATCH_BASE]);
    }
    part_of_group(&group, 0, blocks, bases[SCRATCH_BASE]);
    return 0;
}

/* ---- all steps */

int run_steps(const npy_intp *step, const npy_intp *end, char **bases) {
    int found = 0;
    for (; step < end; step += step[LOOP_LENGTH]) {
        switch (step[LOOP_WORDS]) {
        case LOOP: found |= run_loop(step, bases); break;
        case GROUP: found |= run_group(step, bases); break;
        default: found |= run_rolled(step, bases);
        }
        if (MAYBE_EXCEPTIONS()) found |= read_exceptions(); /* at once: maximum, matmul, scipy.special ... clear what came before */
    }
    return found;
}

int run_code(const npy_intp *code, npy_intp start, npy_intp stop, char **bases) {
    int found;
    clear_exceptions();
    found = run_steps(code + start, code + stop, bases);
    return found | read_exceptions();
}

/* ---- what keeps malformed words from being run */

static const char *survey_args(const npy_intp *args, npy_intp nargs, npy_intp words, npy_intp nbases) {
    npy_intp k;
    for (k = 0; k < nargs; k++) {
        if (args[words * k + BASE] < 0 || args[words * k + BASE] >= nbases) return "an argument's base does not exist";
    }
    return NULL;
}

static const char *survey_loop(const npy_intp *step, npy_intp nbases) {
    npy_intp words, k;
    LoopStep loop;
    if (step[LOOP_LENGTH] <= LOOP_HEAD) return "a loop's words end too early";
    if (step[LOOP_FN] == 0) return "a loop has no address";
    if (step[LOOP_NARGS] < 1 || step[LOOP_NARGS] > MAX_ARGS) return "a loop has too few or too many arguments";
    if (step[LOOP_NOUTER] < 0 || step[LOOP_NOUTER] > MAX_OUTER) return "a loop has too many outer dimensions";
    if (step[LOOP_NCORE] < 0 || step[LOOP_NCORE] > step[LOOP_LENGTH]) return "a loop's number of core dimensions is wrong";
    if (step[LOOP_NSTRIDES] < step[LOOP_NARGS] || step[LOOP_NSTRIDES] > step[LOOP_LENGTH]) return "a loop's number of strides is wrong";
    words = LOOP_HEAD + 1 + step[LOOP_NCORE] + step[LOOP_NSTRIDES] + 2 * step[LOOP_NARGS] + step[LOOP_NOUTER] * (1 + step[LOOP_NARGS]);
    if (words != step[LOOP_LENGTH]) return "a loop's words do not add up";
    loop = read_loop(step);
    if (step[LOOP_N] < 0) return "a loop's dimension is negative";
    for (k = 0; k < step[LOOP_NCORE]; k++) {
        if (loop.dims[1 + k] < 0) return "a loop's dimension is negative";
    }
    for (k = 0; k < loop.nouter; k++) {
        if (loop.outer[k * (1 + loop.nargs)] < 0) return "a loop's dimension is negative";
    }
    return survey_args(loop.args, loop.nargs, 2, nbases);
}

static const char *survey_group(const npy_intp *head, npy_intp nbases) {
    const npy_intp *step = head + GROUP_HEAD, *end = head + head[LOOP_LENGTH];
    npy_intp k;
    const char *wrong;
    if (step > end) return "a group's words end too early";
    if (head[GROUP_BLOCK] < 1 || head[GROUP_ROWS] < 0 || head[GROUP_N] < 0 || head[GROUP_SCRATCH] < 0) return "a group's dimension is negative";
    if (head[GROUP_SCRATCH] > PY_SSIZE_T_MAX / 4) return "a group wants more scratch memory than there can be";
    if (head[GROUP_BLOCK] > PY_SSIZE_T_MAX / 4 || head[GROUP_ROWS] > PY_SSIZE_T_MAX / 4) return "a group has more rows than there can be";
    for (k = 0; k < head[GROUP_NSTEPS]; k++, step += step[STEP_LENGTH]) {
        if (end - step < STEP_HEAD) return "a group's words end too early";
        if (step[STEP_FN] == 0) return "a loop has no address";
        if (step[STEP_NARGS] < 1 || step[STEP_NARGS] > MAX_ARGS) return "a loop has too few or too many arguments";
        if (step[STEP_LENGTH] != STEP_HEAD + 5 * step[STEP_NARGS] || end - step < step[STEP_LENGTH]) return "a group's words do not add up";
        wrong = survey_args(step + STEP_HEAD + step[STEP_NARGS], step[STEP_NARGS], 4, nbases);
        if (wrong != NULL) return wrong;
    }
    return step == end ? NULL : "a group's words do not add up";
}

const char *survey_steps(const npy_intp *step, const npy_intp *end, npy_intp nbases, Survey *survey) {
    const char *wrong;
    if (nbases > survey->nbases) survey->nbases = nbases;
    for (; step < end; step += step[LOOP_LENGTH]) {
        if (end - step < ROLLED_HEAD || step[LOOP_LENGTH] < 1 || step[LOOP_LENGTH] > end - step) return "a step's words end too early";
        if (step[LOOP_WORDS] == LOOP) {
            wrong = survey_loop(step, nbases);
            if (wrong != NULL) return wrong;
            survey->work += loop_work(step);
        } else if (step[LOOP_WORDS] == GROUP) {
            if (end - step < GROUP_HEAD) return "a step's words end too early";
            wrong = survey_group(step, nbases);
            if (wrong != NULL) return wrong;
            survey->work += group_work(step);
            if (step[GROUP_SCRATCH] > survey->scratch) survey->scratch = step[GROUP_SCRATCH];
        } else if (step[LOOP_WORDS] == ROLLED) {
            wrong = survey_rolled(step, nbases, survey);
            if (wrong != NULL) return wrong;
        } else {
            return "a step is neither a loop nor a group, nor rolled up";
        }
    }
    return NULL;
}

const char *survey_code(const npy_intp *code, npy_intp start, npy_intp stop, npy_intp nbases, Survey *survey) {
    survey->work = 0;
    survey->scratch = 0;
    survey->nbases = nbases;
    return survey_steps(code + start, code + stop, nbases, survey);
}
