#pragma once

// This header includes all of the wire module, which answers other processes over HTTP and gRPC and through shared
// memory.

#include "headrace/wire/client.hpp"
#include "headrace/wire/model.hpp"
#include "headrace/wire/server.hpp"
