# Decides whether there is a server for other processes (src/wire), for which Boost.Beast and nlohmann-json are needed:
# headers alone. Without, making a server says so.

find_package(Boost 1.74 QUIET)
find_package(nlohmann_json 3.10 QUIET)
set(HEADRACE_WIRE_ENABLED OFF)
if(Boost_FOUND AND nlohmann_json_FOUND)
  set(HEADRACE_WIRE_ENABLED ON)
endif()
message(STATUS "Headrace: server ${HEADRACE_WIRE_ENABLED} (Boost.Beast, nlohmann-json)")
