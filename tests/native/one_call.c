/* An engine that includes the header late and uses one call of it. */
#include <stdio.h>

#include "tauscope_trace.h"

int main(void) {
    printf("%d\n", tauscope_hash(TAUSCOPE_HASH, 1) != 0);
    return 0;
}
