! arrays.f90 - memory that Fortran has; arrays.c makes kinds of memory.h of it.
module arrays
  use iso_c_binding
  implicit none
  integer(c_int8_t), allocatable, target :: whole(:)
  interface
     subroutine frame_wait(life, mem, bytes) bind(c)
       import
       type(c_ptr), value :: life, mem
       integer(c_size_t), value :: bytes
     end subroutine
  end interface
contains
  ! Deallocated and allocated.
  function array_anew(bytes) bind(c) result(mem)
    integer(c_size_t), value :: bytes
    type(c_ptr) :: mem
    if (allocated(whole)) deallocate (whole)
    allocate (whole(bytes))
    mem = c_loc(whole)
  end function

  ! Reallocated by an assignment: what fits is kept, zeros behind it.
  function array_assigned(bytes) bind(c) result(mem)
    integer(c_size_t), value :: bytes
    integer(c_size_t) :: i
    type(c_ptr) :: mem
    if (bytes <= size(whole)) then
       whole = whole(1:bytes)
    else
       whole = [whole, [(0_c_int8_t, i = 1, bytes - size(whole))]]
    end if
    mem = c_loc(whole)
  end function

  ! By move_alloc: two arrays for a moment, nothing kept.
  function array_moved(bytes) bind(c) result(mem)
    integer(c_size_t), value :: bytes
    integer(c_int8_t), allocatable, target :: fresh(:)
    type(c_ptr) :: mem
    allocate (fresh(bytes), source=0_c_int8_t)
    call move_alloc(fresh, whole)
    mem = c_loc(whole)
  end function

  subroutine array_gone() bind(c)
    if (allocated(whole)) deallocate (whole)
  end subroutine

  ! Automatic: there until the subroutine ends.
  subroutine array_automatic(life, bytes) bind(c)
    type(c_ptr), value :: life
    integer(c_size_t), value :: bytes
    integer(c_int8_t), target :: local(bytes)
    call frame_wait(life, c_loc(local), bytes)
  end subroutine
end module
