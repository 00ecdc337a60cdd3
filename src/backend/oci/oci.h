/*
 * oci - walls that an OCI runtime builds from a bundle we write
 *
 * `oci`: crun or runc. Namespaces, ids, mounts and the syscall list as behind the process wall,
 * made by a runtime that others have looked at for years; never taken by `any`.
 * `gvisor`: runsc. Programs run on a kernel of their own, a process of the host's without rights.
 *
 *   monitor                        child, own mount namespace
 *   writes config.json, trees ───▶ lays the trees out (launch/stage.h)
 *   frames on a stream ──────────▶ execve: runc run --bundle … ──▶ caisson-agent --stdio
 *
 * The bundle and the runtime's state lie in <state root>/.oci/<sandbox id>, 0700, whose lock the
 * monitor holds. docs/decisions/oci.md
 */
#pragma once

#include "backend/backend.h"

extern const struct backend oci_backend, gvisor_backend;
