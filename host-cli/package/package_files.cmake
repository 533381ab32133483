# Run by cpack on the installed files, before they are packed: what only packages have.
set(overrides_vprof
"# The guest of `vprof run --demo`, which is no program of Linux. Its symbols are what its profile shows.
vprof: statically-linked-binary [usr/libexec/vprof/demo-guest.elf]
vprof: unstripped-binary-or-object [usr/libexec/vprof/demo-guest.elf]
# It runs in guests, from an initramfs that has no libraries.
vprof: statically-linked-binary [usr/libexec/vprof/vprof-agent]
")
set(overrides_vprof-agent
"# It runs in guests of any distribution.
vprof-agent: statically-linked-binary [usr/bin/vprof-agent]
")

function(compress file)
	execute_process(COMMAND gzip -9n ${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
foreach(component vprof agent)
	set(name ${component})
	if(component STREQUAL agent)
		set(name vprof-agent)
	endif()
	set(root ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr/share)
	file(GLOB_RECURSE pages ${root}/man/*.[1-8])
	foreach(page ${pages})
		compress(${page})
	endforeach()
	file(MAKE_DIRECTORY ${root}/doc/${name})
	if(CPACK_GENERATOR STREQUAL DEB)
		file(READ ${CPACK_VPROF_SOURCE}/LICENSE license)
		string(REGEX REPLACE "^[^\n]*\n\n(Copyright[^\n]*)\n\n" "" license "${license}")
		set(copyright "${CMAKE_MATCH_1}")
		string(REGEX REPLACE "\n+$" "" license "${license}")
		string(REPLACE "\n\n" "\n.\n" license "${license}")
		string(REPLACE "\n" "\n " license "${license}")
		string(REPLACE "Copyright (c) " "" copyright "${copyright}")
		file(WRITE ${root}/doc/${name}/copyright
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: vprof

Files: *
Copyright: ${copyright}
License: BSD-2-Clause

License: BSD-2-Clause
 ${license}
")
		file(WRITE ${root}/doc/${name}/changelog.Debian
"vprof (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium

  * Packages of vprof's own build; its changes are in changelog.gz.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
		compress(${root}/doc/${name}/changelog.Debian)
		file(WRITE ${root}/lintian/overrides/${name} "${overrides_${name}}")
	else()
		file(COPY ${CPACK_VPROF_SOURCE}/LICENSE DESTINATION ${root}/doc/${name})
	endif()
	file(COPY_FILE ${CPACK_VPROF_SOURCE}/.github/CHANGES.md ${root}/doc/${name}/changelog)
	compress(${root}/doc/${name}/changelog)
endforeach()
