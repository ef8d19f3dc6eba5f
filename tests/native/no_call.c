/* An engine that includes the header first and uses nothing of it yet. */
#include "tauscope_trace.h"

int main(void) { return 0; }
