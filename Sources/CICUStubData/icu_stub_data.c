// An empty set of data for the ICU library inside Foundation.
//
// GRDB and Yams bring Foundation into the program, and Foundation brings 34 MB of locales, calendars and
// character sets that nothing here asks for. A statically linked program takes the first definition of the
// data's name that the linker finds. This one is a valid header with an empty table of contents, as in the
// "stubdata" library of ICU itself: regular expressions, case and normal form C work without data, as their
// tables are code; formats for a locale, time zones by name and international host names would not.
//
// The number in the name is the version of ICU, 76 in Swift 6.3. With another version this definition is
// unused and the program as large as without it; Tests/install/check_install.sh notices.
#ifdef __linux__

#include <stdint.h>

#include "icu_stub_data.h"

// The layout of "Headers of data" in the ICU User Guide: header, UDataInfo, table of contents.
struct stub_data {
    uint16_t header_size;
    uint8_t magic1, magic2;
    uint16_t info_size, reserved_word;
    uint8_t is_big_endian, charset_family, size_of_uchar, reserved_byte;
    uint8_t format[4], format_version[4], data_version[4];
    char padding[8];
    uint32_t count, reserved;
};

extern const struct stub_data icudt76_dat;
__attribute__((aligned(16))) const struct stub_data icudt76_dat = {
    .header_size = 32,
    .magic1 = 0xda,
    .magic2 = 0x27,
    .info_size = 20,
    .is_big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__,
    .size_of_uchar = 2,
    .format = {'T', 'o', 'C', 'P'},
    .format_version = {1, 0, 0, 0},
};

#endif
