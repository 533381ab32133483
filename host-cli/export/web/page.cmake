# The HTML page: bundled with what package-lock.json names, in the build folder. Without node and npm, or without their
# registry, the page is left out and `vprof report --html` says so; -DVPROF_WITH_HTML=ON makes that an error instead.
vprof_option(HTML "the page of --html, made by node and npm")

set(page_source ${CMAKE_CURRENT_LIST_DIR})
set(page_build ${CMAKE_CURRENT_BINARY_DIR}/page)

# page_packages(RESULT): installs them as they are locked; RESULT is empty, or why there are none.
function(page_packages result)
	find_program(NODE node)
	find_program(NPM npm)
	mark_as_advanced(NODE NPM)
	if(NOT NODE OR NOT NPM)
		set(${result} "node or npm is missing" PARENT_SCOPE)
		return()
	endif()
	execute_process(COMMAND ${NODE} -p "parseInt(process.versions.node)" OUTPUT_VARIABLE major)
	if(major LESS 18)
		set(${result} "node is older than 18" PARENT_SCOPE)
		return()
	endif()
	file(SHA256 ${page_source}/package-lock.json locked)
	set(stamp ${page_build}/installed-${locked})
	if(NOT EXISTS ${stamp})
		message(STATUS "Installing the packages of the HTML page")
		configure_file(${page_source}/package.json ${page_build}/package.json COPYONLY)
		configure_file(${page_source}/package-lock.json ${page_build}/package-lock.json COPYONLY)
		execute_process(COMMAND ${NPM} ci --prefer-offline --no-audit --no-fund --loglevel=error
			WORKING_DIRECTORY ${page_build} RESULT_VARIABLE status OUTPUT_QUIET)
		if(NOT status EQUAL 0)
			set(${result} "npm ci failed" PARENT_SCOPE)
			return()
		endif()
		file(TOUCH ${stamp})
	endif()
	set(${result} "" PARENT_SCOPE)
endfunction()

set(page_problem "-DVPROF_WITH_HTML=${VPROF_WITH_HTML}")
if(VPROF_WITH_HTML)
	page_packages(page_problem)
endif()

if(NOT page_problem STREQUAL "")
	if(VPROF_WITH_HTML AND NOT VPROF_WITH_HTML STREQUAL "AUTO")
		message(FATAL_ERROR "The HTML page cannot be built: ${page_problem}")
	endif()
	vprof_summary(HTML FALSE "the page of --html" "${page_problem}")
	return()
endif()
vprof_summary(HTML TRUE "the page of --html")

file(GLOB page_files CONFIGURE_DEPENDS ${page_source}/src/*)
add_custom_command(OUTPUT ${page_build}/page.html
	COMMAND ${NODE} ${page_source}/build.mjs ${page_source}/src ${page_build}
	DEPENDS ${page_source}/build.mjs ${page_source}/package-lock.json ${page_files}
	COMMENT "Bundling the HTML page" VERBATIM)
target_sources(vprof PRIVATE export/page_template.S)
target_compile_definitions(vprof PRIVATE VPROF_HAVE_HTML)
set_source_files_properties(export/page_template.S PROPERTIES OBJECT_DEPENDS ${page_build}/page.html
	INCLUDE_DIRECTORIES ${page_build} COMPILE_OPTIONS "-Wa,-I${page_build}")
file(READ ${page_source}/package-lock.json page_lock)
string(JSON page_version GET ${page_lock} packages node_modules/d3-flame-graph version)
vprof_built_with("d3-flame-graph ${page_version}")
