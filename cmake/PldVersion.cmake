# Reads the version from Cargo.toml, the only place that has it: PLD_VERSION, and PLD_SOVERSION for the SONAME.
file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/../Cargo.toml" pld_version_line REGEX "^version = \"[0-9.]+\"$" LIMIT_COUNT 1)
string(REGEX REPLACE "^version = \"([0-9.]+)\"$" "\\1" PLD_VERSION "${pld_version_line}")
string(REGEX MATCH "^(0\\.)?[0-9]+" PLD_SOVERSION "${PLD_VERSION}")
