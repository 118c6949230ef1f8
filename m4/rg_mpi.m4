# RG_MPI: one MPI library per build.
#   --with-mpi=openmpi|mpich|DIR   default: the mpicc found in PATH
# Sets MPICC, MPIRUN, MPIFC (may be empty), MPI_CFLAGS, MPI_LIBS, RG_MPI_NAME and RG_MPI_FLAVOR
# (openmpi or mpich: the ABI, which every MPI library of today follows one of).
AC_DEFUN([RG_MPI], [
AC_ARG_WITH([mpi], [AS_HELP_STRING([--with-mpi=openmpi|mpich|DIR],
	[MPI library to build for @<:@the mpicc in PATH@:>@])],
	[], [with_mpi=default])
AC_ARG_VAR([MPICC], [MPI compiler wrapper, overrides --with-mpi])
AC_ARG_VAR([MPIRUN], [launcher of the same MPI library])
AC_ARG_VAR([MPIFC], [Fortran compiler wrapper of the same MPI library, for tests])
rg_mpi_package="libopenmpi-dev openmpi-bin"
AS_CASE([$with_mpi],
	[default|yes], [rg_mpicc=mpicc rg_mpirun=mpirun rg_mpi_path=$PATH],
	[openmpi], [rg_mpicc="mpicc.openmpi mpicc" rg_mpirun="mpirun.openmpi mpirun" rg_mpi_path=$PATH],
	[mpich], [rg_mpicc="mpicc.mpich mpicc" rg_mpirun="mpirun.mpich mpirun" rg_mpi_path=$PATH
		rg_mpi_package="libmpich-dev mpich"],
	[no], [AC_MSG_ERROR([--with-mpi=no: Railgauge measures MPI; accepted: openmpi, mpich or a directory])],
	[/*], [rg_mpicc=mpicc rg_mpirun=mpirun rg_mpi_path=$with_mpi/bin:$with_mpi],
	[AC_MSG_ERROR([--with-mpi=$with_mpi: accepted: openmpi, mpich or an absolute directory])])
AC_PATH_PROGS([MPICC], [$rg_mpicc], [], [$rg_mpi_path])
AC_PATH_PROGS([MPIRUN], [$rg_mpirun], [], [$rg_mpi_path])
# Named as MPICC is and beside it: another one may belong to another library.
rg_name=${MPICC##*/}
AS_CASE([$rg_name], [*mpicc*], [
	rg_before=${rg_name%%mpicc*} rg_after=${rg_name#*mpicc}
	AC_PATH_PROGS([MPIFC], [${rg_before}mpifort$rg_after ${rg_before}mpif90$rg_after], [],
		[`AS_DIRNAME(["$MPICC"])`])])

RG_MPI_FLAVOR=none RG_MPI_NAME=none
AS_IF([test -z "$MPICC" || test -z "$MPIRUN"],
	[RG_MISSING([an MPI library (no $rg_mpicc)], [$rg_mpi_package])],
[
	# Open MPI says it in two calls, MPICH in two others.
	AS_IF([MPI_CFLAGS=`$MPICC --showme:compile 2>/dev/null`],
		[MPI_LIBS=`$MPICC --showme:link`],
		[MPI_CFLAGS=`$MPICC -compile-info -c x.c 2>/dev/null | tr ' ' '\n' | grep '^-@<:@ID@:>@' | tr '\n' ' '`
		 MPI_LIBS=`$MPICC -link-info 2>/dev/null | tr ' ' '\n' | grep -e '^-@<:@Ll@:>@' -e '^-Wl,-rpath' | tr '\n' ' '`])
	rg_save_CPPFLAGS=$CPPFLAGS rg_save_LIBS=$LIBS
	CPPFLAGS="$CPPFLAGS $MPI_CFLAGS" LIBS="$MPI_LIBS $LIBS"
	AC_MSG_CHECKING([for the MPI library behind $MPICC])
	AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>
#ifndef OPEN_MPI
#error not Open MPI
#endif]], [[MPI_Init(0, 0);]])], [RG_MPI_FLAVOR=openmpi RG_MPI_NAME="Open MPI"],
	[AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>
#ifndef MPICH_NUMVERSION
#error not MPICH
#endif]], [[MPI_Init(0, 0);]])], [RG_MPI_FLAVOR=mpich RG_MPI_NAME="MPICH"])])
	AC_MSG_RESULT([$RG_MPI_NAME])
	AS_IF([test $RG_MPI_FLAVOR = none],
		[AC_MSG_ERROR([$MPICC is neither Open MPI nor of the MPICH family (or cannot link); see config.log])])
	AS_CASE([$with_mpi],
		[openmpi|mpich], [AS_IF([test $RG_MPI_FLAVOR != $with_mpi],
			[AC_MSG_ERROR([--with-mpi=$with_mpi, but $MPICC is $RG_MPI_NAME])])])
	# MPICH's MPI_STATUSES_IGNORE is (MPI_Status *)1, which gcc takes for an array of no bytes.
	AS_IF([test $RG_MPI_FLAVOR = mpich],
		[AX_RG_CFLAG([-Wno-stringop-overflow], [RG_WARN_CFLAGS])])
	AC_CHECK_FUNCS([MPI_Send_c MPI_Isendrecv MPI_Parrived MPI_Buffer_flush MPI_Request_get_status_all \
		MPIX_Comm_revoke MPIX_Stream_comm_create MPIX_GPU_query_support \
		MPIX_Query_cuda_support MPIX_Query_hip_support MPIX_Query_rocm_support \
		MPIX_Query_ze_support])
	CPPFLAGS=$rg_save_CPPFLAGS LIBS=$rg_save_LIBS
])
AC_SUBST([MPI_CFLAGS])
AC_SUBST([MPI_LIBS])
AC_DEFINE_UNQUOTED([RG_MPI_FLAVOR], ["$RG_MPI_FLAVOR"], [ABI family of the MPI library])
AM_CONDITIONAL([MPI_OPENMPI], [test $RG_MPI_FLAVOR = openmpi])
AM_CONDITIONAL([MPI_MPICH], [test $RG_MPI_FLAVOR = mpich])
AS_IF([test $RG_MPI_FLAVOR = openmpi], [AC_DEFINE([RG_OPENMPI], [1], [built for Open MPI])],
	[AC_DEFINE([RG_OPENMPI], [0], [built for Open MPI])])
])
