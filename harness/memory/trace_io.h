// Traces as files, so that a run can be looked at, replayed and compared later: JSON in columns,
// compressed with gzip. Columns, because a column of small numbers compresses to almost nothing.
//
//   { "schema_version": "1.1.0",
//     "header": { "device", "rules", "allocator", "workload", "capacity_bytes",
//                 "granule_bytes" (since 1.1) },
//     "op_names": [ name of op 0, … ],
//     "kinds": [ … ], "roles": [ … ], "phases": [ … ],     names that the columns index
//     "columns": { "kind", "role", "phase", "stream", "id", "op", "step",
//                  "requested_bytes", "size_bytes", "address", "time_ns": each one array with an
//                  entry per event; op is −1 outside ops } }
#pragma once

#include <string>

#include "harness/memory/trace.h"

namespace headroom {

// Complete or not there: the file gets its name when it is finished. Throws InputError when it
// cannot be made, DeviceError when the disk refuses (full).
void write_trace(const Trace& trace, const std::string& path);

// Throws InputError naming the file when it is missing, cut off, or not a trace.
Trace read_trace(const std::string& path);

}  // namespace headroom
