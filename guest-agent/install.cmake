# Makes the link to the agent. The install step has the prefix; CMakeLists.txt gives the names of files and folders.
get_filename_component(prefix ${CMAKE_INSTALL_PREFIX} ABSOLUTE)
cmake_path(ABSOLUTE_PATH bindir BASE_DIRECTORY ${prefix} NORMALIZE)
cmake_path(ABSOLUTE_PATH libexecdir BASE_DIRECTORY ${prefix} NORMALIZE)
file(RELATIVE_PATH target ${bindir} ${libexecdir}/vprof/vprof-agent)
message(STATUS "Installing: $ENV{DESTDIR}${bindir}/vprof-agent")
file(MAKE_DIRECTORY $ENV{DESTDIR}${bindir})
file(CREATE_LINK ${target} $ENV{DESTDIR}${bindir}/vprof-agent SYMBOLIC)
