# loading.py LIBRARY - the MPI library by ctypes, as scripts do that have no mpi4py.
import ctypes
import sys

mpi = ctypes.CDLL(sys.argv[1])
if hasattr(mpi, "ompi_mpi_comm_world"):
	world = ctypes.byref(ctypes.c_char.in_dll(mpi, "ompi_mpi_comm_world"))
	byte = ctypes.byref(ctypes.c_char.in_dll(mpi, "ompi_mpi_byte"))
else:
	world, byte = ctypes.c_int(0x44000000), ctypes.c_int(0x4c00010d)
rank = ctypes.c_int(-1)
mpi.MPI_Init(None, None)
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
me, other = rank.value, 1 - rank.value
for count in 1, 64, 300000:
	out = (ctypes.c_ubyte * count)(*((i * 7 + me) % 256 for i in range(count)))
	got = (ctypes.c_ubyte * count)()
	status = (ctypes.c_char * 256)()
	mpi.MPI_Sendrecv(out, count, byte, other, 3, got, count, byte, other, 3, world, status)
	assert bytes(got) == bytes((i * 7 + other) % 256 for i in range(count)), count
mpi.MPI_Finalize()
sys.stdout.write("loading: rank %d holds\n" % me)
