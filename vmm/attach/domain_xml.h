// SPDX-License-Identifier: BSD-2-Clause
/* What a domain's XML says of it (libvirt, docs/formatdomain.rst). */
#ifndef VPROF_ATTACH_DOMAIN_XML_H
#define VPROF_ATTACH_DOMAIN_XML_H

#include <stdint.h>

struct domain_xml {
	char *type;     /* <domain type=...>: "kvm", "qemu"; NULL: it does not say */
	char *security; /* <launchSecurity type=...>: "sev", "sev-snp", "tdx", "s390-pv"; NULL: memory is not encrypted
	                 */
	uint32_t vsock_cid; /* <vsock><cid address=...>: 3 and up, of a guest; 0: it has none, or it is not known yet */
};

/* What of it could be read; for domain_xml_clear. NULL is no XML. */
struct domain_xml domain_xml_parse(const char *text);
void domain_xml_clear(struct domain_xml *xml);

#endif
