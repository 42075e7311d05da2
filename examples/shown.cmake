# Succeeds if PAGE shows what STEP prints between 3 ranks; SOURCE is the file that the page names.
execute_process(COMMAND ${STEP} --ranks 3 OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
file(READ ${PAGE} page)
string(FIND "${page}" "\n```text output=${SOURCE}\n${printed}```\n" at)
if(at EQUAL -1)
  message(FATAL_ERROR "${PAGE} does not show this output of ${SOURCE}:\n${printed}")
endif()
