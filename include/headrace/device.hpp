#pragma once

// This header includes all of the device module: devices, their memory and streams, copies in batches, spans, rings
// and launches of kernels. Handles of CUDA are in headrace/cuda.hpp.

#include "headrace/device/advice.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/copy_batch.hpp"
#include "headrace/device/device.hpp"
#include "headrace/device/graph.hpp"
#include "headrace/device/group.hpp"
#include "headrace/device/kernel.hpp"
#include "headrace/device/placement.hpp"
#include "headrace/device/rebalance.hpp"
#include "headrace/device/ring.hpp"
#include "headrace/device/span.hpp"
#include "headrace/device/stream.hpp"
#include "headrace/device/topology.hpp"
