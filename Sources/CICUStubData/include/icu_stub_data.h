#pragma once

// Nothing to call: linking this target is what counts. See icu_stub_data.c.
