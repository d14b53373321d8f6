/* Running a case on a device, between guard zones: the devices of the matrix, one row each; memory that is
 * poisoned before and inspected after. Knows no op. */
#ifndef MF_TESTS_OPS_RIG_H
#define MF_TESTS_OPS_RIG_H

#include "backends/backend.h"
#include "ops/graph.h"

enum { OP_WHY = 512 };

/* A device of the matrix. A new backend needs a row only when the registry does not have it. */
typedef struct op_device op_device;
struct op_device {
    const char *name;
    /* MINFER_ERR_UNSUPPORTED, and why: not here, which skips the row. */
    minfer_status (*open)(op_device *row, minfer_error *err);
    int32_t number, threads; /* for open: tier, registry id; threads of a CPU */
    bool other_bits;         /* its sums have an order of their own: the formula is its only measure */
    mf_device *dev;
    mf_caps caps;      /* declared */
    mf_device_ops ops; /* the device's, but buffers are larger than asked for */
    const mf_device_ops *inner;
    minfer_error absent; /* why it is not here */
};

/* Row 0 is scalar C on one thread: always there, and the measure of the others. Opens what can be opened. */
op_device *op_devices_open(size_t *n);
void op_devices_close(void);

typedef struct op_result {
    void *out; /* the output's bytes; NULL: the graph has none */
    size_t bytes;
    uint8_t *cache[2]; /* K and V after the run */
    int32_t n_fused;
} op_result;

/* Builds, runs, inspects. false: why says what was wrong: an error, or memory that was touched, be it in a
 * run that failed. */
bool op_run_case(op_device *dv, const op_case *c, const op_data *d, bool plain, op_result *r,
                 char why[OP_WHY]);
void op_result_free(op_result *r);

/* Registers the weights of a case, and forgets them. */
minfer_status op_register(op_device *dv, const op_data *d, minfer_error *err);
void op_forget(op_device *dv);

#endif
