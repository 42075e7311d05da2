/* The header comes first and alone, and in two translation units of one program. */
#include <pld.h>

extern pld_status_t other_unit(void);
pld_status_t other_unit(void) {
  pld_transfer_t t = pld_whole();
  return t.struct_size == sizeof t ? PLD_OK : PLD_ERR_INTERNAL;
}
