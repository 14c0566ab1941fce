/* Arrays that grow, and sets of rows of integers: see rows.c. */

#ifndef CHAINRULE_ROWS_H
#define CHAINRULE_ROWS_H

#include "eager.h"

typedef struct {
    char *bytes;
    size_t length, capacity;
} Buffer; /* an array that grows */

int append_bytes(Buffer *buffer, const void *item, size_t size); /* this one and the next two: -1 error */
static inline int append_int(Buffer *buffer, npy_int32 item) {
    if (buffer->length + sizeof item > buffer->capacity) return append_bytes(buffer, &item, sizeof item);
    memcpy(buffer->bytes + buffer->length, &item, sizeof item);
    buffer->length += sizeof item;
    return 0;
}
static inline int append_long(Buffer *buffer, npy_int64 item) {
    if (buffer->length + sizeof item > buffer->capacity) return append_bytes(buffer, &item, sizeof item);
    memcpy(buffer->bytes + buffer->length, &item, sizeof item);
    buffer->length += sizeof item;
    return 0;
}
static inline npy_int32 *ints(const Buffer *buffer) { return (npy_int32 *)buffer->bytes; }
static inline npy_intp count_ints(const Buffer *buffer) { return (npy_intp)(buffer->length / sizeof(npy_int32)); }
/* An array with the memory of a buffer, which is empty then */
PyObject *int_array(Buffer *buffer);
PyObject *to_numpy(Buffer *buffer, int type, size_t itemsize);

typedef struct {
    Buffer words, ends, hashes; /* the integers of all rows; the end of each row among them; the hash of each row */
    npy_int32 *table;           /* open addressing: numbers of rows, -1 where free */
    size_t size;
    npy_int32 count;
} Rows; /* distinct rows of integers, numbered in order of first occurrence */

void free_rows(Rows *rows);
npy_int32 row_number(Rows *rows, const npy_int64 *row, size_t n);            /* the number of a row, which is added if it is new; -1 error */
npy_int32 find_row(const Rows *rows, const npy_int64 *row, size_t n);        /* the number of a row; -1 if it is new */
const npy_int64 *row_at(const Rows *rows, npy_int32 number, size_t *length); /* the integers of a row */
unsigned long long mixed(unsigned long long hash, unsigned long long part);

#endif
