#pragma once

// This header includes the grid module, which runs stencils on grids over any number of devices. Ranks are in
// headrace/grid/mpi.hpp, which needs MPI.

#include "headrace/grid/fdtd.hpp"
#include "headrace/grid/simulation.hpp"
#include "headrace/grid/stencil.hpp"
#include "headrace/grid/stencils/fdtd2d.hpp"
#include "headrace/grid/stencils/fdtd3d.hpp"
#include "headrace/grid/stencils/heat.hpp"
#include "headrace/grid/stencils/jacobi.hpp"
