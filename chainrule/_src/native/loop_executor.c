/* Steps that are done again and again (ROLLED): the same words each time, and bases that move.

   A base of its own is another base, of the code or of what is rolled around it, plus `step` bytes for each time before; in a ring
   of some length it goes back to the beginning. interpreter.c says where its words are. */

#include "loops.h"

enum { WORDS = 1, COUNT, NMOVES, FIRST };
enum { SOURCE, STEP, RING, PLACE, MOVE_WORDS };

int run_rolled(const npy_intp *step, char **bases) {
    const npy_intp *moves = step + ROLLED_HEAD, *move, *body = moves + MOVE_WORDS * step[NMOVES], *end = step + step[WORDS];
    char **own = bases + step[FIRST];
    npy_intp time, k;
    int found = 0;
    for (time = 0; time < step[COUNT]; time++) {
        for (k = 0, move = moves; k < step[NMOVES]; k++, move += MOVE_WORDS) {
            npy_intp at = move[RING] ? (move[PLACE] + time) % move[RING] : time;
            own[k] = bases[move[SOURCE]] + at * move[STEP];
        }
        found |= run_steps(body, end, bases);
    }
    return found;
}

const char *survey_rolled(const npy_intp *step, npy_intp nbases, Survey *survey) {
    const npy_intp *moves = step + ROLLED_HEAD, *end = step + step[WORDS];
    double before = survey->work;
    const char *wrong;
    npy_intp k;
    if (step[COUNT] < 0) return "steps are rolled up a negative number of times";
    if (step[NMOVES] < 0 || step[NMOVES] > (end - moves) / MOVE_WORDS) return "what is rolled up has more moves than words";
    if (step[FIRST] != nbases) return "what is rolled up has bases in another place than after all others";
    for (k = 0; k < step[NMOVES]; k++, moves += MOVE_WORDS) {
        if (moves[SOURCE] < 0 || moves[SOURCE] >= nbases) return "a move's base does not exist";
        if (moves[RING] < 0 || moves[PLACE] < 0) return "a move's ring is negative";
    }
    wrong = survey_steps(moves, end, nbases + step[NMOVES], survey);
    survey->work = before + (survey->work - before) * (double)step[COUNT];
    return wrong;
}
