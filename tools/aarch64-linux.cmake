# Cross build for 64-bit ARM Linux with Debian's compiler and the arm64 packages that `tools/setup arm64` installs.
# CC names another compiler of the target. Tests run under qemu-user: tools/check_arm64.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
if(NOT DEFINED ENV{CC})
  set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
endif()
set(CMAKE_C_COMPILER_TARGET aarch64-linux-gnu) # for clang; gcc is made for one target

# Debian's multiarch folders serve both compilers and qemu: libraries of the target in their own folder, headers shared.
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(PKG_CONFIG_EXECUTABLE pkg-config)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_PATH} "")
find_program(MINFER_QEMU NAMES qemu-aarch64 qemu-aarch64-static)
if(MINFER_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${MINFER_QEMU})
endif()
