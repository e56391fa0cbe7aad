// glibc's malloc.h, which Swift's Glibc module does not include.
#include <malloc.h>
