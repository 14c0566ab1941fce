/* A small pool of threads that share the parts of one step.

   The thread that calls does its share; the others are there to help, and nothing waits for one that has not come yet.
   So a pool that is busy, or that a fork left behind, costs speed and nothing else. Threads never touch Python. */

#include "loops.h"

#if defined(_WIN32)

int get_threads(void) { return 1; }
void set_threads(int count) { (void)count; }

int run_parts(Part part, const void *context, npy_intp count, double work, npy_intp scratch_bytes, char *scratch) {
    (void)work;
    (void)scratch_bytes;
    part(context, 0, count, scratch);
    return 0;
}

#else

#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#define MOST_THREADS 64
/* how often a thread looks for work before it sleeps: some ten microseconds */
#define LOOKS 1000
/* element operations, some twenty microseconds, for which a thread is woken */
#define WORTH_A_THREAD 65536

#if defined(__x86_64__) || defined(__i386__)
#define RELAX() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define RELAX() __asm__ __volatile__("yield")
#else
#define RELAX() ((void)0)
#endif

#define LOAD(place) __atomic_load_n(&(place), __ATOMIC_ACQUIRE)
#define STORE(place, value) __atomic_store_n(&(place), value, __ATOMIC_RELEASE)

typedef struct {
    Part part;
    const void *context;
    npy_intp count, chunk, next; /* parts; how many a thread takes at a time; the first that nobody has taken */
    npy_intp scratch_bytes;
    fenv_t mode; /* rounding and flushing of the calling thread */
    int found;   /* floating-point exceptions of the helpers */
} Job;

static struct {
    pthread_mutex_t busy; /* held by the thread whose job it is */
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake;
    Job *job;       /* NULL: nothing to join */
    int seats;      /* how many helpers may still join it */
    unsigned generation; /* counts jobs; read without the lock by threads that look for work */
    int helping;    /* helpers inside the job; always changed atomically, as helpers leave without the lock */
    int started;    /* helpers there are */
} pool = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, 0, 0, 0, 0};

static int threads_wanted = 1;

int get_threads(void) { return LOAD(threads_wanted); }

void set_threads(int count) { STORE(threads_wanted, count < 1 ? 1 : count < MOST_THREADS ? count : MOST_THREADS); }

/* Take parts of a job until none is left. */
static void help(Job *job, char *scratch) {
    for (;;) {
        npy_intp first = __atomic_fetch_add(&job->next, job->chunk, __ATOMIC_RELAXED);
        if (first >= job->count) return;
        job->part(job->context, first, first + job->chunk < job->count ? first + job->chunk : job->count, scratch);
    }
}

/* What a helper does with a job that it has joined. */
static void help_with_own_scratch(Job *job, char **scratch, npy_intp *bytes) {
    if (job->scratch_bytes > *bytes) {
        void *more = NULL;
        if (posix_memalign(&more, 64, (size_t)job->scratch_bytes) != 0) return;
        free(*scratch);
        *scratch = more;
        *bytes = job->scratch_bytes;
    }
    fesetenv(&job->mode);
    clear_exceptions();
    help(job, *scratch);
    __atomic_fetch_or(&job->found, read_exceptions(), __ATOMIC_RELAXED);
}

static void *helper(void *unused) {
    char *scratch = NULL;
    npy_intp bytes = 0;
    unsigned seen = 0;
    int looks;
    (void)unused;
    for (;;) {
        Job *job;
        for (looks = 0; looks < LOOKS && LOAD(pool.generation) == seen; looks++) RELAX();
        pthread_mutex_lock(&pool.lock);
        while (pool.generation == seen) pthread_cond_wait(&pool.wake, &pool.lock);
        seen = pool.generation;
        job = pool.seats > 0 ? pool.job : NULL;
        if (job != NULL) {
            pool.seats--;
            __atomic_fetch_add(&pool.helping, 1, __ATOMIC_RELAXED);
        }
        pthread_mutex_unlock(&pool.lock);
        if (job == NULL) continue;
        help_with_own_scratch(job, &scratch, &bytes);
        __atomic_fetch_sub(&pool.helping, 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

/* In the child of a fork there are no helpers, and the locks may be anybody's. */
static void forget(void) {
    pthread_mutex_init(&pool.busy, NULL);
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.wake, NULL);
    pool.job = NULL;
    pool.generation = pool.helping = pool.started = 0;
}

/* Have `count` helpers, or as many as the system gives. Called by the holder of pool.busy. */
static void start_helpers(int count) {
    static int registered;
    sigset_t all, before;
    pthread_t thread;
    if (pool.started >= count) return;
    if (!registered) registered = pthread_atfork(NULL, NULL, forget) == 0;
    if (!registered) return;
    sigfillset(&all); /* signals are the main thread's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool.started < count && pthread_create(&thread, NULL, helper, NULL) == 0) {
        pthread_detach(thread);
        pool.started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void publish(Job *job, int seats) {
    pthread_mutex_lock(&pool.lock);
    pool.job = job;
    pool.seats = seats;
    STORE(pool.generation, pool.generation + 1);
    pthread_mutex_unlock(&pool.lock);
    while (seats-- > 0) pthread_cond_signal(&pool.wake);
}

/* No helper can join any more; wait for those that are inside. */
static void withdraw(void) {
    int looks = 0;
    pthread_mutex_lock(&pool.lock);
    pool.job = NULL;
    pthread_mutex_unlock(&pool.lock);
    while (LOAD(pool.helping) != 0) {
        if (++looks < LOOKS) RELAX();
        else sched_yield();
    }
}

int run_parts(Part part, const void *context, npy_intp count, double work, npy_intp scratch_bytes, char *scratch) {
    int threads = get_threads();
    Job job;
    if (count < threads) threads = (int)count;
    if (work / WORTH_A_THREAD < threads) threads = (int)(work / WORTH_A_THREAD);
    if (threads < 2 || pthread_mutex_trylock(&pool.busy) != 0) {
        part(context, 0, count, scratch);
        return 0;
    }
    start_helpers(threads - 1);
    job.part = part;
    job.context = context;
    job.count = count;
    job.chunk = count / (8 * threads) > 1 ? count / (8 * threads) : 1;
    job.next = 0;
    job.scratch_bytes = scratch_bytes;
    job.found = 0;
    fegetenv(&job.mode);
    publish(&job, threads - 1);
    help(&job, scratch);
    withdraw();
    pthread_mutex_unlock(&pool.busy);
    return job.found;
}

#endif
