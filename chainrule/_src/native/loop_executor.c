/* LOOP_BODY steps of a program: run the same steps `count` times with moving bases.

   A moving base is a source base plus `stride` bytes for each iteration. In a ring buffer, the offset wraps around after `length` iterations.
   The source is a base of the program or of an enclosing loop. interpreter.c documents the words. */

#include "loops.h"

enum { STEP_WORDS = 1, TRIP_COUNT, NMOVING, FIRST_BASE };
enum { SOURCE_BASE, STRIDE, RING_LENGTH, RING_INDEX, MOVING_WORDS };

int run_loop_body(const npy_intp *step, char **bases) {
    const npy_intp *moving = step + LOOP_BODY_HEAD, *base, *body = moving + MOVING_WORDS * step[NMOVING], *end = step + step[STEP_WORDS];
    char **moving_bases = bases + step[FIRST_BASE];
    npy_intp iteration, k;
    int exceptions = 0;
    for (iteration = 0; iteration < step[TRIP_COUNT]; iteration++) {
        for (k = 0, base = moving; k < step[NMOVING]; k++, base += MOVING_WORDS) {
            npy_intp index = base[RING_LENGTH] ? (base[RING_INDEX] + iteration) % base[RING_LENGTH] : iteration;
            moving_bases[k] = bases[base[SOURCE_BASE]] + index * base[STRIDE];
        }
        exceptions |= run_steps(body, end, bases);
        if (exceptions & FAILED) break;
    }
    return exceptions;
}

const char *check_loop_body(const npy_intp *step, npy_intp nbases, CodeStats *stats) {
    const npy_intp *moving = step + LOOP_BODY_HEAD, *end = step + step[STEP_WORDS];
    double outer_work = stats->work;
    const char *problem;
    npy_intp k;
    if (step[TRIP_COUNT] < 0) return "a loop has a negative trip count";
    if (step[NMOVING] < 0 || step[NMOVING] > (end - moving) / MOVING_WORDS) return "a loop has more moving bases than words";
    if (step[FIRST_BASE] != nbases) return "the moving bases of a loop do not follow the other bases";
    for (k = 0; k < step[NMOVING]; k++, moving += MOVING_WORDS) {
        if (moving[SOURCE_BASE] < 0 || moving[SOURCE_BASE] >= nbases) return "the source of a moving base does not exist";
        if (moving[RING_LENGTH] < 0 || moving[RING_INDEX] < 0) return "the ring buffer of a moving base is negative";
    }
    problem = check_steps(moving, end, nbases + step[NMOVING], stats);
    stats->work = outer_work + (stats->work - outer_work) * (double)step[TRIP_COUNT];
    return problem;
}
