/* A thread pool for parallel_for.

   The calling thread runs ranges of the job, too. Helpers join if they are free, and the calling thread never waits for a helper that has
   not joined. A pool that is busy, or was lost in a fork, costs speed only. Helpers never use Python. */

#include "loops.h"

#if defined(_WIN32)

int get_threads(void) { return 1; }
void set_threads(int count) { (void)count; }

int parallel_for(RangeFunction function, const void *context, npy_intp count, double work, npy_intp scratch_bytes, char *scratch) {
    (void)work;
    (void)scratch_bytes;
    function(context, 0, count, scratch);
    return 0;
}

#else

#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#define MAX_THREADS 64
/* number of polls before an idle helper sleeps, about ten microseconds */
#define MAX_SPINS 1000
/* number of element operations, about twenty microseconds, that is worth waking a thread */
#define WORK_PER_THREAD 65536

#if defined(__x86_64__) || defined(__i386__)
#define RELAX() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define RELAX() __asm__ __volatile__("yield")
#else
#define RELAX() ((void)0)
#endif

#define LOAD(variable) __atomic_load_n(&(variable), __ATOMIC_ACQUIRE)
#define STORE(variable, value) __atomic_store_n(&(variable), value, __ATOMIC_RELEASE)

typedef struct {
    RangeFunction function;
    const void *context;
    npy_intp count, chunk, next; /* count: number of items; chunk: items that a thread takes at a time; next: the first item that is not taken */
    npy_intp scratch_bytes;
    fenv_t fenv;    /* rounding mode and flush-to-zero of the calling thread */
    int exceptions; /* floating-point exceptions of the helpers */
} Job;

static struct {
    pthread_mutex_t busy; /* held by the thread that owns the current job */
    pthread_mutex_t lock; /* protects the fields below */
    pthread_cond_t wake;
    Job *job;            /* NULL: no job to join */
    int open_seats;      /* number of helpers that may still join */
    unsigned generation; /* counts jobs; idle helpers read it without the lock */
    int active_helpers;  /* helpers inside the job; atomic, because helpers leave without the lock */
    int nhelpers;        /* number of helper threads */
} pool = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, 0, 0, 0, 0};

static int threads_wanted = 1;

int get_threads(void) { return LOAD(threads_wanted); }

void set_threads(int count) { STORE(threads_wanted, count < 1 ? 1 : count < MAX_THREADS ? count : MAX_THREADS); }

/* Run chunks of a job until none is left. */
static void run_chunks(Job *job, char *scratch) {
    for (;;) {
        npy_intp first = __atomic_fetch_add(&job->next, job->chunk, __ATOMIC_RELAXED);
        if (first >= job->count) return;
        job->function(job->context, first, first + job->chunk < job->count ? first + job->chunk : job->count, scratch);
    }
}

/* Run chunks of a joined job in a helper thread, which has its own scratch memory. */
static void run_as_helper(Job *job, char **scratch, npy_intp *bytes) {
    if (job->scratch_bytes > *bytes) {
        void *memory = NULL;
        if (posix_memalign(&memory, 64, (size_t)job->scratch_bytes) != 0) return;
        free(*scratch);
        *scratch = memory;
        *bytes = job->scratch_bytes;
    }
    fesetenv(&job->fenv);
    clear_exceptions();
    run_chunks(job, *scratch);
    __atomic_fetch_or(&job->exceptions, read_exceptions(), __ATOMIC_RELAXED);
}

static void *helper(void *unused) {
    char *scratch = NULL;
    npy_intp bytes = 0;
    unsigned last_generation = 0;
    int spins;
    (void)unused;
    for (;;) {
        Job *job;
        for (spins = 0; spins < MAX_SPINS && LOAD(pool.generation) == last_generation; spins++) RELAX();
        pthread_mutex_lock(&pool.lock);
        while (pool.generation == last_generation) pthread_cond_wait(&pool.wake, &pool.lock);
        last_generation = pool.generation;
        job = pool.open_seats > 0 ? pool.job : NULL;
        if (job != NULL) {
            pool.open_seats--;
            __atomic_fetch_add(&pool.active_helpers, 1, __ATOMIC_RELAXED);
        }
        pthread_mutex_unlock(&pool.lock);
        if (job == NULL) continue;
        run_as_helper(job, &scratch, &bytes);
        __atomic_fetch_sub(&pool.active_helpers, 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

/* Reset the pool in the child of a fork, which has no helpers. Another thread may have held the locks. */
static void reset_after_fork(void) {
    pthread_mutex_init(&pool.busy, NULL);
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.wake, NULL);
    pool.job = NULL;
    pool.generation = pool.active_helpers = pool.nhelpers = 0;
}

/* Start helpers until there are `count`, or as many as the system allows. The caller holds pool.busy. */
static void start_helpers(int count) {
    static int registered;
    sigset_t all, before;
    pthread_t thread;
    if (pool.nhelpers >= count) return;
    if (!registered) registered = pthread_atfork(NULL, NULL, reset_after_fork) == 0;
    if (!registered) return;
    sigfillset(&all); /* the main thread handles all signals */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool.nhelpers < count && pthread_create(&thread, NULL, helper, NULL) == 0) {
        pthread_detach(thread);
        pool.nhelpers++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void publish(Job *job, int open_seats) {
    pthread_mutex_lock(&pool.lock);
    pool.job = job;
    pool.open_seats = open_seats;
    STORE(pool.generation, pool.generation + 1);
    pthread_mutex_unlock(&pool.lock);
    while (open_seats-- > 0) pthread_cond_signal(&pool.wake);
}

/* Close the job for new helpers, and wait for the active ones. */
static void withdraw(void) {
    int spins = 0;
    pthread_mutex_lock(&pool.lock);
    pool.job = NULL;
    pthread_mutex_unlock(&pool.lock);
    while (LOAD(pool.active_helpers) != 0) {
        if (++spins < MAX_SPINS) RELAX();
        else sched_yield();
    }
}

int parallel_for(RangeFunction function, const void *context, npy_intp count, double work, npy_intp scratch_bytes, char *scratch) {
    int threads = get_threads();
    Job job;
    if (count < threads) threads = (int)count;
    if (work / WORK_PER_THREAD < threads) threads = (int)(work / WORK_PER_THREAD);
    if (threads < 2 || pthread_mutex_trylock(&pool.busy) != 0) {
        function(context, 0, count, scratch);
        return 0;
    }
    start_helpers(threads - 1);
    job.function = function;
    job.context = context;
    job.count = count;
    job.chunk = count / (8 * threads) > 1 ? count / (8 * threads) : 1;
    job.next = 0;
    job.scratch_bytes = scratch_bytes;
    job.exceptions = 0;
    fegetenv(&job.fenv);
    publish(&job, threads - 1);
    run_chunks(&job, scratch);
    withdraw();
    pthread_mutex_unlock(&pool.busy);
    return job.exceptions;
}

#endif
