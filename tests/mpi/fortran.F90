! fortran.F90 - point-to-point messages, requests, types and collectives of an MPI program in
! Fortran: data, statuses and handles.  It has never heard of Railgauge.  BINDING is 1 for
! mpif.h, 2 for the module mpi and 3 for mpi_f08, which differ in the types of handles and
! statuses alone.  Two ranks, each the other one's peer.
!
! No apostrophes in comments: the preprocessor would take them for strings.
#if BINDING == 3
#define REQUEST_ type(MPI_Request)
#define MESSAGE_ type(MPI_Message)
#define COMM_ type(MPI_Comm)
#define TYPE_ type(MPI_Datatype)
#define STATUS_(s) type(MPI_Status) :: s
#define STATUSES_(s,n) type(MPI_Status) :: s(n)
#define ONE_(s,i) s(i)
#define SOURCE_(s) s%MPI_SOURCE
#define TAG_(s) s%MPI_TAG
#else
#define REQUEST_ integer
#define MESSAGE_ integer
#define COMM_ integer
#define TYPE_ integer
#define STATUS_(s) integer :: s(MPI_STATUS_SIZE)
#define STATUSES_(s,n) integer :: s(MPI_STATUS_SIZE, n)
#define ONE_(s,i) s(:, i)
#define SOURCE_(s) s(MPI_SOURCE)
#define TAG_(s) s(MPI_TAG)
#endif

program fortran
  use, intrinsic :: iso_c_binding
#if BINDING == 3
  use mpi_f08
#elif BINDING == 2
  use mpi
#endif
  implicit none
#if BINDING == 1
  include 'mpif.h'
#endif

  ! Integers of 4 bytes: a message of 8 bytes, an eager one and one by rendezvous.
  integer, parameter :: SIZES(3) = [2, 500, 262144], MOST = 262144
  integer, parameter :: UNTOUCHED = -1

  integer, parameter :: DO_WAIT = 1, DO_WAITANY = 2, DO_WAITSOME = 3, DO_WAITALL = 4, &
    DO_TEST = 5, DO_TESTANY = 6, DO_TESTSOME = 7, DO_TESTALL = 8, DO_GET_STATUS = 9, WAYS = 9
  character(len=10), parameter :: NAMES(WAYS) = [character(len=10) :: 'wait', 'waitany', &
    'waitsome', 'waitall', 'test', 'testany', 'testsome', 'testall', 'get_status']
  character(len=6), parameter :: SENDS(4) = ['send  ', 'ssend ', 'bsend ', 'rsend ']

  ! The array that is completed: what its requests are, and what is expected of them.
  integer, parameter :: TOTAL = 9
  REQUEST_ :: r(TOTAL), before(TOTAL)
  logical :: active(TOTAL), stays(TOTAL), ignored
  integer :: tags(TOTAL), way
  ! What WAITANY says of the first request (so does WAITSOME), and of none.
  integer :: first, none
  ! Whether rails carry the messages, and whether the library is MPICH: what only they do well.
  logical :: layered, mpich
  ! MPICH 4.2 by itself: MPI_Request_get_status makes a persistent receive that is complete inactive.
  logical :: forgets
  type(c_funptr) :: found_ledger

  ! asynchronous: messages change them behind the back of the compiler.
  integer, asynchronous, save :: out(2 * MOST, 3), in(2 * MOST, 3)
  integer, asynchronous, target, save :: attached(6 * MOST + 1000)
  character(len=60) :: about = 'start'
  integer :: rank, peer, ranks, n, ierr, checks = 0, failures = 0, all_failures, i

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  if (ranks /= 2) then
    print '(a)', 'fortran: two ranks are meant'
    call MPI_Abort(MPI_COMM_WORLD, 2, ierr)
  end if
  peer = 1 - rank
  call ask_library
  call attach
  call find_indices
  do i = 1, size(SIZES)
    n = SIZES(i)
    call blocking
    call nonblocking
    call persistent
    call cancelled
    call freed
    call probed
    call exchanged
    call typed
    call collectives
    call communicators
    call sections
  end do
  call detach
  call wrong_arguments
  call tell_layer
  call MPI_Allreduce(failures, all_failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (rank == 0) print '(i0,a,i0,a)', checks, ' checks, ', all_failures, ' failed'
  call MPI_Finalize(ierr)
  if (all_failures > 0) error stop 1

contains

  ! ---- Verdicts and data -----------------------------------------------------------------------

  subroutine expect(what, holds)
    character(len=*), intent(in) :: what
    logical, intent(in) :: holds

    checks = checks + 1
    if (holds) return
    failures = failures + 1
    if (failures <= 20) print '(a,i0,5a,i0,a)', 'FAILED: rank ', rank, ', ', trim(about), &
      ': ', what, ', of ', 4 * n, ' bytes'
  end subroutine

  integer function element(i, from, tag)
    integer, intent(in) :: i, from, tag

    element = i + 2 * MOST * (from + 2 * tag)
  end function

  subroutine fill(k, tag)
    integer, intent(in) :: k, tag
    integer :: i

    do i = 1, n
      out(i, k) = element(i, rank, tag)
    end do
    in(:, k) = UNTOUCHED
  end subroutine

  ! What the peer sent with a tag, and nothing behind it.
  subroutine received(k, tag)
    integer, intent(in) :: k, tag
    integer :: i, wrong

    wrong = 0
    do i = 1, n
      if (in(i, k) /= element(i, peer, tag)) wrong = wrong + 1
    end do
    if (in(n + 1, k) /= UNTOUCHED) wrong = wrong + 1
    call expect('data', wrong == 0)
  end subroutine

  subroutine status_is(s, source, tag, elements)
    STATUS_(s)
    integer, intent(in) :: source, tag, elements
    integer :: bytes, found
    logical :: flag

    call expect('source', SOURCE_(s) == source)
    call expect('tag', TAG_(s) == tag)
    call MPI_Get_count(s, MPI_BYTE, bytes, ierr)
    call expect('bytes', bytes == 4 * elements)
    call MPI_Get_elements(s, MPI_INTEGER, found, ierr)
    call expect('elements', found == elements)
    call MPI_Test_cancelled(s, flag, ierr)
    call expect('not cancelled', .not. flag)
  end subroutine

  subroutine status_is_empty(s)
    STATUS_(s)

    call status_is(s, MPI_ANY_SOURCE, MPI_ANY_TAG, 0)
  end subroutine

  ! A status of r(i).  A send has none that means something.
  subroutine judge(i, s)
    integer, intent(in) :: i
    STATUS_(s)

    if (ignored) return
    if (.not. active(i)) then
      call status_is_empty(s)
    else if (tags(i) >= 0) then
      call status_is(s, peer, tags(i), n)
    end if
  end subroutine

  subroutine attach
    call MPI_Buffer_attach(attached, 4 * size(attached), ierr)
  end subroutine

  subroutine detach
    integer :: bytes
#if BINDING == 3
    type(c_ptr) :: where

    call MPI_Buffer_detach(where, bytes, ierr)
#else
    integer(MPI_ADDRESS_KIND) :: where

    call MPI_Buffer_detach(where, bytes, ierr)
#endif
    about = 'MPI_BUFFER_DETACH'
    call expect('size of the buffer', bytes == 4 * size(attached))
#if BINDING == 3
    call expect('the buffer', c_associated(where, c_loc(attached)))
#endif
  end subroutine

  ! ---- Blocking and nonblocking ----------------------------------------------------------------

  subroutine send_as(mode, k, tag)
    integer, intent(in) :: mode, k, tag

    select case (mode)
    case (1)
      call MPI_Send(out(:, k), n, MPI_INTEGER, peer, tag, MPI_COMM_WORLD, ierr)
    case (2)
      call MPI_Ssend(out(:, k), n, MPI_INTEGER, peer, tag, MPI_COMM_WORLD, ierr)
    case (3)
      call MPI_Bsend(out(:, k), n, MPI_INTEGER, peer, tag, MPI_COMM_WORLD, ierr)
    case (4)
      call MPI_Rsend(out(:, k), n, MPI_INTEGER, peer, tag, MPI_COMM_WORLD, ierr)
    end select
  end subroutine

  subroutine isend_as(mode, k, tag, request)
    integer, intent(in) :: mode, k, tag
    REQUEST_ :: request

    select case (mode)
    case (1)
      call MPI_Isend(out(:, k), n, MPI_INTEGER, peer, tag, MPI_COMM_WORLD, request, ierr)
    case (2)
      call MPI_Issend(out(:, k), n, MPI_INTEGER, peer, tag, MPI_COMM_WORLD, request, ierr)
    case (3)
      call MPI_Ibsend(out(:, k), n, MPI_INTEGER, peer, tag, MPI_COMM_WORLD, request, ierr)
    case (4)
      call MPI_Irsend(out(:, k), n, MPI_INTEGER, peer, tag, MPI_COMM_WORLD, request, ierr)
    end select
  end subroutine

  subroutine blocking
    REQUEST_ :: request
    STATUS_(s)
    integer :: mode, turn

    ! A ready send asks for a receive that is posted.
    do mode = 1, 3
      about = 'blocking ' // SENDS(mode)
      call fill(1, mode)
      do turn = 0, 1
        if (rank == turn) then
          call send_as(mode, 1, mode)
        else if (mode == 1) then
          call MPI_Recv(in(:, 1), n, MPI_INTEGER, peer, mode, MPI_COMM_WORLD, &
            MPI_STATUS_IGNORE, ierr)
        else
          call MPI_Recv(in(:, 1), MOST, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, &
            MPI_COMM_WORLD, s, ierr)
          call status_is(s, peer, mode, n)
        end if
      end do
      call received(1, mode)
    end do
    about = 'blocking rsend'
    call fill(1, 4)
    call MPI_Irecv(in(:, 1), n, MPI_INTEGER, peer, 4, MPI_COMM_WORLD, request, ierr)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call send_as(4, 1, 4)
    call MPI_Wait(request, s, ierr)
    call status_is(s, peer, 4, n)
    call received(1, 4)
  end subroutine

  subroutine nonblocking
    REQUEST_ :: requests(2)
    STATUSES_(s, 2)
    integer :: mode

    do mode = 1, 4
      about = 'nonblocking ' // SENDS(mode)
      call fill(1, mode)
      call MPI_Irecv(in(:, 1), n, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &
        requests(1), ierr)
      call MPI_Barrier(MPI_COMM_WORLD, ierr)
      call isend_as(mode, 1, mode, requests(2))
      call MPI_Waitall(2, requests, s, ierr)
      call status_is(ONE_(s, 1), peer, mode, n)
      call received(1, mode)
      call expect('null handles', all_null(requests, 2))
    end do
  end subroutine

  logical function all_null(requests, count)
    integer, intent(in) :: count
    REQUEST_ :: requests(count)
    integer :: i

    all_null = .true.
    do i = 1, count
      if (requests(i) /= MPI_REQUEST_NULL) all_null = .false.
    end do
  end function

  ! ---- Requests --------------------------------------------------------------------------------

  ! Persistent ones, in one array with others, over every send and every way to complete them.
  subroutine persistent
    integer :: mode, i

    do mode = 1, 4
      ! Open MPI 4.1 by itself sends wrong data.
      if (mode == 3 .and. n == MOST .and. .not. (layered .or. mpich)) cycle
      do way = 1, WAYS
        about = 'persistent ' // trim(SENDS(mode)) // ', ' // NAMES(way)
        call MPI_Recv_init(in(:, 1), n, MPI_INTEGER, peer, 21, MPI_COMM_WORLD, r(1), ierr)
        call init_as(mode, 1, 21, r(2))
        r(3) = MPI_REQUEST_NULL
        call MPI_Recv_init(in(:, 1), n, MPI_INTEGER, peer, 24, MPI_COMM_WORLD, r(4), ierr)
        call MPI_Recv_init(in(:, 3), n, MPI_INTEGER, MPI_ANY_SOURCE, 23, MPI_COMM_WORLD, r(8), &
          ierr)
        call init_as(mode, 3, 23, r(9))
        stays = [.true., .true., .false., .true., .false., .false., .false., .true., .true.]
        active = [.true., .true., .false., .false., .true., .true., .true., .true., .true.]
        tags = [21, -1, -1, -1, -1, 22, -1, 23, -1]
        call round(.false.)
        call round(.true.)
        do i = 1, TOTAL
          if (.not. stays(i)) cycle
          call MPI_Request_free(r(i), ierr)
          call expect('a null handle, freed', r(i) == MPI_REQUEST_NULL)
        end do
      end do
    end do
  end subroutine

  subroutine init_as(mode, k, tag, request)
    integer, intent(in) :: mode, k, tag
    REQUEST_ :: request

    select case (mode)
    case (1)
      call MPI_Send_init(out(:, k), n, MPI_INTEGER, peer, tag, MPI_COMM_WORLD, request, ierr)
    case (2)
      call MPI_Ssend_init(out(:, k), n, MPI_INTEGER, peer, tag, MPI_COMM_WORLD, request, ierr)
    case (3)
      call MPI_Bsend_init(out(:, k), n, MPI_INTEGER, peer, tag, MPI_COMM_WORLD, request, ierr)
    case (4)
      call MPI_Rsend_init(out(:, k), n, MPI_INTEGER, peer, tag, MPI_COMM_WORLD, request, ierr)
    end select
  end subroutine

  subroutine round(without_status)
    logical, intent(in) :: without_status
    REQUEST_ :: pair(2)
    integer :: i

    ignored = without_status
    call fill(1, 21)
    call fill(2, 22)
    call fill(3, 23)
    pair = [r(1), r(8)]
    call MPI_Startall(2, pair, ierr)
    call expect('startall', ierr == MPI_SUCCESS)
    call expect('handles that startall left alone', pair(1) == r(1) .and. pair(2) == r(8))
    call MPI_Irecv(in(:, 2), n, MPI_INTEGER, peer, 22, MPI_COMM_WORLD, r(6), ierr)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)	! receives are posted: ready sends may go
    call MPI_Start(r(2), ierr)
    call expect('start', ierr == MPI_SUCCESS)
    call MPI_Isend(out(:, 2), n, MPI_INTEGER, peer, 22, MPI_COMM_WORLD, r(7), ierr)
    call MPI_Start(r(9), ierr)
    call MPI_Ibarrier(MPI_COMM_WORLD, r(5), ierr)
    before = r
    call complete
    call received(1, 21)
    call received(2, 22)
    call received(3, 23)
    do i = 1, TOTAL
      if (stays(i)) then
        call expect('a handle that stays', r(i) == before(i))
      else
        call expect('a null handle', r(i) == MPI_REQUEST_NULL)
      end if
    end do
    call MPI_Barrier(MPI_COMM_WORLD, ierr)	! what was attached for MPI_BSEND is free again
  end subroutine

  ! Takes r to its end in one of the ways, looking at what comes with each.
  subroutine complete
    STATUS_(s)
    STATUSES_(ss, TOTAL)
    logical :: left(TOTAL), flag
    integer :: i, k, index, found, indices(TOTAL)

    left = active
    select case (way)
    case (DO_WAIT, DO_TEST, DO_GET_STATUS)
      do i = 1, TOTAL
        flag = way == DO_WAIT
        do while (.not. flag)
          if (way == DO_TEST .and. ignored) then
            call MPI_Test(r(i), flag, MPI_STATUS_IGNORE, ierr)
          else if (way == DO_TEST) then
            call MPI_Test(r(i), flag, s, ierr)
          else
            ! Never without a status: Open MPI 4.1 would say false for ever.
            call MPI_Request_get_status(r(i), flag, s, ierr)
          end if
        end do
        if (way == DO_GET_STATUS) then
          call judge(i, s)
          call expect('a handle that was only asked', r(i) == before(i))
        end if
        if (way /= DO_TEST) then
          if (ignored) call MPI_Wait(r(i), MPI_STATUS_IGNORE, ierr)
          if (.not. ignored) call MPI_Wait(r(i), s, ierr)
        end if
        call expect('error code', ierr == MPI_SUCCESS)
        if (forgets .and. way == DO_GET_STATUS .and. stays(i)) cycle
        call judge(i, s)
      end do
    case (DO_WAITANY, DO_TESTANY)
      do
        flag = way == DO_WAITANY
        if (way == DO_WAITANY) then
          if (ignored) call MPI_Waitany(TOTAL, r, index, MPI_STATUS_IGNORE, ierr)
          if (.not. ignored) call MPI_Waitany(TOTAL, r, index, s, ierr)
        else
          do while (.not. flag)
            if (ignored) call MPI_Testany(TOTAL, r, index, flag, MPI_STATUS_IGNORE, ierr)
            if (.not. ignored) call MPI_Testany(TOTAL, r, index, flag, s, ierr)
          end do
        end if
        call expect('error code', ierr == MPI_SUCCESS)
        if (index == none) exit
        index = index + 1 - first
        call tick(index, left)
        call judge(index, s)
      end do
      ! MPICH 4.0 by itself gives none.
      if (.not. ignored .and. (layered .or. .not. mpich)) call status_is_empty(s)
    case (DO_WAITSOME, DO_TESTSOME)
      do
        if (way == DO_WAITSOME .and. ignored) then
          call MPI_Waitsome(TOTAL, r, found, indices, MPI_STATUSES_IGNORE, ierr)
        else if (way == DO_WAITSOME) then
          call MPI_Waitsome(TOTAL, r, found, indices, ss, ierr)
        else if (ignored) then
          call MPI_Testsome(TOTAL, r, found, indices, MPI_STATUSES_IGNORE, ierr)
        else
          call MPI_Testsome(TOTAL, r, found, indices, ss, ierr)
        end if
        call expect('error code', ierr == MPI_SUCCESS)
        if (found == MPI_UNDEFINED) exit
        do k = 1, found
          index = indices(k) + 1 - first
          call tick(index, left)
          call judge(index, ONE_(ss, k))
        end do
      end do
    case (DO_WAITALL, DO_TESTALL)
      flag = way == DO_WAITALL
      if (way == DO_WAITALL .and. ignored) then
        call MPI_Waitall(TOTAL, r, MPI_STATUSES_IGNORE, ierr)
      else if (way == DO_WAITALL) then
        call MPI_Waitall(TOTAL, r, ss, ierr)
      end if
      do while (.not. flag)
        if (ignored) call MPI_Testall(TOTAL, r, flag, MPI_STATUSES_IGNORE, ierr)
        if (.not. ignored) call MPI_Testall(TOTAL, r, flag, ss, ierr)
      end do
      call expect('error code', ierr == MPI_SUCCESS)
      do i = 1, TOTAL
        call judge(i, ONE_(ss, i))
      end do
    end select
    if (way == DO_WAITANY .or. way == DO_TESTANY .or. way == DO_WAITSOME .or. way == DO_TESTSOME) &
      call expect('no index left out', .not. any(left))
  end subroutine

  ! MPICH 4.0 counts from 0 in mpi_f08, and says 1 more than MPI_UNDEFINED elsewhere.
  subroutine find_indices
    REQUEST_ :: one(1)

    about = 'waitany of one'
    one(1) = MPI_REQUEST_NULL
    call MPI_Waitany(1, one, none, MPI_STATUS_IGNORE, ierr)
    call expect('undefined', none == MPI_UNDEFINED .or. none == MPI_UNDEFINED + 1)
    call MPI_Irecv(in(:, 1), 0, MPI_INTEGER, MPI_PROC_NULL, 1, MPI_COMM_WORLD, one(1), ierr)
    call MPI_Waitany(1, one, first, MPI_STATUS_IGNORE, ierr)
    call expect('the first', first == 1 .or. first == 0)
    if (rank == 0 .and. (none /= MPI_UNDEFINED .or. first /= 1)) &
      print '(a,i0,a,i0)', 'MPI_WAITANY of the library: the first is ', first, ', none is ', none
  end subroutine

  ! One of those that were left is complete: each once.
  subroutine tick(index, left)
    integer, intent(in) :: index
    logical :: left(TOTAL)

    if (index < 1 .or. index > TOTAL) then
      call expect('an index within the array', .false.)
      call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
    end if
    call expect('an index of an active request, once', left(index))
    left(index) = .false.
  end subroutine

  subroutine cancelled
    REQUEST_ :: request, kept, two(2)
    STATUS_(s)
    STATUSES_(ss, 2)
    logical :: flag

    about = 'a cancelled receive'
    call fill(1, 31)
    call MPI_Irecv(in(:, 1), n, MPI_INTEGER, peer, 31, MPI_COMM_WORLD, request, ierr)
    call MPI_Cancel(request, ierr)
    call MPI_Wait(request, s, ierr)
    call MPI_Test_cancelled(s, flag, ierr)
    call expect('cancelled', flag)
    call expect('a null handle', request == MPI_REQUEST_NULL)

    about = 'a cancelled receive beside another'
    call fill(2, 32)
    call MPI_Irecv(in(:, 1), n, MPI_INTEGER, peer, 31, MPI_COMM_WORLD, two(1), ierr)
    call MPI_Irecv(in(:, 2), n, MPI_INTEGER, peer, 32, MPI_COMM_WORLD, two(2), ierr)
    call MPI_Cancel(two(1), ierr)
    call MPI_Isend(out(:, 2), n, MPI_INTEGER, peer, 32, MPI_COMM_WORLD, request, ierr)
    call MPI_Waitall(2, two, ss, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call MPI_Test_cancelled(ONE_(ss, 1), flag, ierr)
    call expect('cancelled', flag)
    call status_is(ONE_(ss, 2), peer, 32, n)
    call received(2, 32)
    call expect('null handles', all_null(two, 2))

    about = 'a cancelled persistent receive'
    call MPI_Recv_init(in(:, 1), n, MPI_INTEGER, peer, 31, MPI_COMM_WORLD, request, ierr)
    kept = request
    call MPI_Start(request, ierr)
    call MPI_Cancel(request, ierr)
    flag = .false.
    do while (.not. flag)
      call MPI_Test(request, flag, s, ierr)
    end do
    call MPI_Test_cancelled(s, flag, ierr)
    call expect('cancelled', flag)
    call expect('a handle that stays', request == kept)
    call expect('nothing received', all(in(:, 1) == UNTOUCHED))
    about = 'a receive that was cancelled, started again'
    call MPI_Start(request, ierr)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)	! the peer has cancelled what this might match
    call MPI_Isend(out(:, 1), n, MPI_INTEGER, peer, 31, MPI_COMM_WORLD, two(1), ierr)
    call MPI_Wait(request, s, ierr)
    call status_is(s, peer, 31, n)
    call received(1, 31)
    call MPI_Wait(two(1), MPI_STATUS_IGNORE, ierr)
    call MPI_Request_free(request, ierr)
  end subroutine

  ! Requests that nobody waits for: their messages arrive.
  subroutine freed
    REQUEST_ :: request
    STATUS_(s)

    about = 'a freed isend'
    call fill(1, 33)
    call MPI_Isend(out(:, 1), n, MPI_INTEGER, peer, 33, MPI_COMM_WORLD, request, ierr)
    call MPI_Request_free(request, ierr)
    call expect('a null handle', request == MPI_REQUEST_NULL)
    call MPI_Recv(in(:, 1), n, MPI_INTEGER, peer, 33, MPI_COMM_WORLD, s, ierr)
    call status_is(s, peer, 33, n)
    call received(1, 33)
    about = 'a freed send_init, under way'
    call fill(2, 34)
    call MPI_Send_init(out(:, 2), n, MPI_INTEGER, peer, 34, MPI_COMM_WORLD, request, ierr)
    call MPI_Start(request, ierr)
    call MPI_Request_free(request, ierr)
    call expect('a null handle', request == MPI_REQUEST_NULL)
    call MPI_Recv(in(:, 2), n, MPI_INTEGER, peer, 34, MPI_COMM_WORLD, s, ierr)
    call received(2, 34)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
  end subroutine

  ! ---- Probes ----------------------------------------------------------------------------------

  subroutine probed
    REQUEST_ :: request, two(2)
    MESSAGE_ :: message
    STATUS_(s)
    logical :: flag

    about = 'probe'
    call fill(1, 41)
    call MPI_Isend(out(:, 1), n, MPI_INTEGER, peer, 41, MPI_COMM_WORLD, request, ierr)
    call MPI_Probe(MPI_ANY_SOURCE, 41, MPI_COMM_WORLD, s, ierr)
    call status_is(s, peer, 41, n)
    call MPI_Probe(peer, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call MPI_Recv(in(:, 1), n, MPI_INTEGER, peer, 41, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call received(1, 41)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)

    about = 'iprobe'
    call MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, flag, s, ierr)
    call expect('no message', .not. flag)
    call fill(1, 42)
    call MPI_Isend(out(:, 1), n, MPI_INTEGER, peer, 42, MPI_COMM_WORLD, request, ierr)
    flag = .false.
    do while (.not. flag)
      call MPI_Iprobe(peer, 42, MPI_COMM_WORLD, flag, s, ierr)
    end do
    call status_is(s, peer, 42, n)
    call MPI_Iprobe(peer, 42, MPI_COMM_WORLD, flag, MPI_STATUS_IGNORE, ierr)
    call expect('the message is still there', flag)
    call MPI_Recv(in(:, 1), n, MPI_INTEGER, peer, 42, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call received(1, 42)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)

    about = 'mprobe, mrecv'
    call fill(1, 43)
    call MPI_Isend(out(:, 1), n, MPI_INTEGER, peer, 43, MPI_COMM_WORLD, request, ierr)
    call MPI_Mprobe(MPI_ANY_SOURCE, 43, MPI_COMM_WORLD, message, s, ierr)
    call expect('a message', message /= MPI_MESSAGE_NULL)
    call status_is(s, peer, 43, n)
    call MPI_Iprobe(peer, 43, MPI_COMM_WORLD, flag, MPI_STATUS_IGNORE, ierr)
    call expect('taken out', .not. flag)
    call MPI_Mrecv(in(:, 1), n, MPI_INTEGER, message, s, ierr)
    call expect('a null message', message == MPI_MESSAGE_NULL)
    call status_is(s, peer, 43, n)
    call received(1, 43)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)

    about = 'improbe, imrecv'
    call MPI_Improbe(peer, 99, MPI_COMM_WORLD, flag, message, s, ierr)
    call expect('no message', .not. flag)
    call fill(1, 44)
    call MPI_Isend(out(:, 1), n, MPI_INTEGER, peer, 44, MPI_COMM_WORLD, two(1), ierr)
    flag = .false.
    do while (.not. flag)
      call MPI_Improbe(MPI_ANY_SOURCE, 44, MPI_COMM_WORLD, flag, message, s, ierr)
    end do
    call status_is(s, peer, 44, n)
    call MPI_Imrecv(in(:, 1), n, MPI_INTEGER, message, two(2), ierr)
    call expect('a null message', message == MPI_MESSAGE_NULL)
    call MPI_Wait(two(2), s, ierr)
    call status_is(s, peer, 44, n)
    call MPI_Wait(two(1), MPI_STATUS_IGNORE, ierr)
    call received(1, 44)
    call expect('null handles', all_null(two, 2))

    about = 'mprobe, imrecv, without statuses'
    call fill(1, 45)
    call MPI_Isend(out(:, 1), n, MPI_INTEGER, peer, 45, MPI_COMM_WORLD, two(1), ierr)
    call MPI_Mprobe(peer, 45, MPI_COMM_WORLD, message, MPI_STATUS_IGNORE, ierr)
    call MPI_Imrecv(in(:, 1), n, MPI_INTEGER, message, two(2), ierr)
    call MPI_Waitall(2, two, MPI_STATUSES_IGNORE, ierr)
    call received(1, 45)
    about = 'mprobe of nobody'
    call MPI_Mprobe(MPI_PROC_NULL, 45, MPI_COMM_WORLD, message, s, ierr)
    call expect('no process', message == MPI_MESSAGE_NO_PROC)
    call MPI_Mrecv(in(:, 1), n, MPI_INTEGER, message, s, ierr)
    call status_is(s, MPI_PROC_NULL, MPI_ANY_TAG, 0)
  end subroutine

  ! ---- Exchanges, types ------------------------------------------------------------------------

  subroutine exchanged
    STATUS_(s)
    integer :: i

    about = 'sendrecv'
    call fill(1, 51)
    call MPI_Sendrecv(out(:, 1), n, MPI_INTEGER, peer, 51, in(:, 1), n, MPI_INTEGER, &
      MPI_ANY_SOURCE, 51, MPI_COMM_WORLD, s, ierr)
    call status_is(s, peer, 51, n)
    call received(1, 51)
    about = 'sendrecv_replace'
    call fill(1, 52)
    do i = 1, n
      in(i, 1) = out(i, 1)
    end do
    call MPI_Sendrecv_replace(in(:, 1), n, MPI_INTEGER, peer, 52, peer, 52, MPI_COMM_WORLD, s, &
      ierr)
    call status_is(s, peer, 52, n)
    call received(1, 52)
    about = 'sendrecv with nobody'
    call fill(1, 53)
    call MPI_Sendrecv(out(:, 1), n, MPI_INTEGER, MPI_PROC_NULL, 53, in(:, 1), n, MPI_INTEGER, &
      MPI_PROC_NULL, 53, MPI_COMM_WORLD, s, ierr)
    call status_is(s, MPI_PROC_NULL, MPI_ANY_TAG, 0)
    call expect('nothing received', all(in(:, 1) == UNTOUCHED))
  end subroutine

  subroutine typed
    TYPE_ :: every_second, sending, receiving, types(2)
    REQUEST_ :: requests(2)
    STATUS_(s)
    STATUSES_(ss, 2)
    integer(MPI_ADDRESS_KIND) :: places(2)
    integer :: i, lengths(2), wrong

    about = 'vectors'
    call MPI_Type_vector(n, 1, 2, MPI_INTEGER, every_second, ierr)
    call MPI_Type_commit(every_second, ierr)
    in(:, 1) = UNTOUCHED
    out(:, 1) = UNTOUCHED
    do i = 1, n
      out(2 * i - 1, 1) = element(i, rank, 61)
    end do
    call MPI_Irecv(in(:, 1), n, MPI_INTEGER, peer, 61, MPI_COMM_WORLD, requests(1), ierr)
    call MPI_Isend(out(:, 1), 1, every_second, peer, 61, MPI_COMM_WORLD, requests(2), ierr)
    call MPI_Waitall(2, requests, ss, ierr)
    call status_is(ONE_(ss, 1), peer, 61, n)
    call received(1, 61)
    call fill(1, 62)
    call MPI_Sendrecv(out(:, 1), n, MPI_INTEGER, peer, 62, in(:, 1), 1, every_second, peer, 62, &
      MPI_COMM_WORLD, s, ierr)
    call status_is(s, peer, 62, n)
    wrong = 0
    do i = 1, n
      if (in(2 * i - 1, 1) /= element(i, peer, 62)) wrong = wrong + 1
      if (in(2 * i, 1) /= UNTOUCHED) wrong = wrong + 1
    end do
    call expect('data in a vector', wrong == 0)
    call MPI_Type_free(every_second, ierr)

    about = 'MPI_BOTTOM'
    lengths = n
    types = MPI_INTEGER
    call MPI_Get_address(out(1, 1), places(1), ierr)
    call MPI_Get_address(out(1, 3), places(2), ierr)
    call MPI_Type_create_struct(2, lengths, places, types, sending, ierr)
    call MPI_Type_commit(sending, ierr)
    call MPI_Get_address(in(1, 1), places(1), ierr)
    call MPI_Get_address(in(1, 3), places(2), ierr)
    call MPI_Type_create_struct(2, lengths, places, types, receiving, ierr)
    call MPI_Type_commit(receiving, ierr)
    call fill(1, 63)
    call fill(2, 66)
    call fill(3, 64)
    call MPI_Sendrecv(MPI_BOTTOM, 1, sending, peer, 63, MPI_BOTTOM, 1, receiving, peer, 63, &
      MPI_COMM_WORLD, s, ierr)
    call status_is(s, peer, 63, 2 * n)
    call received(1, 63)
    call received(3, 64)
    about = 'MPI_BOTTOM, persistent'
    call fill(1, 65)
    call fill(3, 66)
    call MPI_Recv_init(MPI_BOTTOM, 1, receiving, peer, 65, MPI_COMM_WORLD, requests(1), ierr)
    call MPI_Send_init(MPI_BOTTOM, 1, sending, peer, 65, MPI_COMM_WORLD, requests(2), ierr)
    call MPI_Type_free(sending, ierr)
    call MPI_Type_free(receiving, ierr)
    call expect('a null type', receiving == MPI_DATATYPE_NULL)
    call MPI_Startall(2, requests, ierr)
    call MPI_Waitall(2, requests, ss, ierr)
    call status_is(ONE_(ss, 1), peer, 65, 2 * n)
    call received(1, 65)
    call received(3, 66)
    call expect('nothing between', all(in(:, 2) == UNTOUCHED))
    call MPI_Request_free(requests(1), ierr)
    call MPI_Request_free(requests(2), ierr)
  end subroutine

  ! ---- Collectives, communicators --------------------------------------------------------------

  subroutine collectives
    integer :: root, i, wrong

    do root = 0, 1
      about = 'bcast'
      call fill(1, 71)
      if (rank == root) in(1:n, 1) = out(1:n, 1)
      call MPI_Bcast(in(:, 1), n, MPI_INTEGER, root, MPI_COMM_WORLD, ierr)
      wrong = 0
      do i = 1, n
        if (in(i, 1) /= element(i, root, 71)) wrong = wrong + 1
      end do
      call expect('data', wrong == 0 .and. in(n + 1, 1) == UNTOUCHED)
    end do
    about = 'allreduce in place'
    call fill(1, 72)
    in(1:n, 1) = out(1:n, 1)
    call MPI_Allreduce(MPI_IN_PLACE, in(:, 1), n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    wrong = 0
    do i = 1, n
      if (in(i, 1) /= element(i, 0, 72) + element(i, 1, 72)) wrong = wrong + 1
    end do
    call expect('data', wrong == 0 .and. in(n + 1, 1) == UNTOUCHED)
    about = 'alltoall'
    in(:, 1) = UNTOUCHED
    do i = 1, 2 * n
      out(i, 1) = element(i, rank, 73)
    end do
    call MPI_Alltoall(out(:, 1), n, MPI_INTEGER, in(:, 1), n, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    call exchanged_blocks(73)
    about = 'alltoall in place'
    in(1:2 * n, 1) = out(1:2 * n, 1)
    call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INTEGER, in(:, 1), n, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    call exchanged_blocks(73)
  end subroutine

  subroutine exchanged_blocks(tag)
    integer, intent(in) :: tag
    integer :: i, from, wrong

    wrong = 0
    do from = 0, 1
      do i = 1, n
        if (in(from * n + i, 1) /= element(rank * n + i, from, tag)) wrong = wrong + 1
      end do
    end do
    call expect('blocks', wrong == 0)
  end subroutine

  subroutine communicators
    COMM_ :: twin, turned
    REQUEST_ :: requests(3)
    STATUSES_(s, 3)
    integer :: my_rank, other

    ! The same tag in two communicators, received the other way round than sent.
    about = 'comm_dup'
    call MPI_Comm_dup(MPI_COMM_WORLD, twin, ierr)
    call fill(1, 81)
    call fill(2, 82)
    call MPI_Isend(out(:, 1), n, MPI_INTEGER, peer, 81, MPI_COMM_WORLD, requests(1), ierr)
    call MPI_Isend(out(:, 2), n, MPI_INTEGER, peer, 81, twin, requests(2), ierr)
    call MPI_Irecv(in(:, 2), n, MPI_INTEGER, peer, 81, twin, requests(3), ierr)
    call MPI_Recv(in(:, 1), n, MPI_INTEGER, peer, 81, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call MPI_Waitall(3, requests, s, ierr)
    call status_is(ONE_(s, 3), peer, 81, n)
    call received(1, 81)
    call received(2, 82)
    call MPI_Comm_free(twin, ierr)
    call expect('a null communicator', twin == MPI_COMM_NULL)

    about = 'comm_split, with turned ranks'
    call MPI_Comm_split(MPI_COMM_WORLD, 7, -rank, turned, ierr)
    call MPI_Comm_rank(turned, my_rank, ierr)
    call expect('rank', my_rank == peer)
    other = 1 - my_rank
    call fill(1, 83)
    call MPI_Recv_init(in(:, 1), n, MPI_INTEGER, MPI_ANY_SOURCE, 83, turned, requests(1), ierr)
    call MPI_Start(requests(1), ierr)
    call MPI_Send(out(:, 1), n, MPI_INTEGER, other, 83, turned, ierr)
    call MPI_Wait(requests(1), ONE_(s, 1), ierr)
    call status_is(ONE_(s, 1), other, 83, n)
    call received(1, 83)
    call MPI_Request_free(requests(1), ierr)
    call MPI_Comm_free(turned, ierr)
    about = 'comm_split, each for itself'
    call MPI_Comm_split(MPI_COMM_WORLD, rank, 0, turned, ierr)
    call fill(1, 84)
    call MPI_Sendrecv(out(:, 1), n, MPI_INTEGER, 0, 84, in(:, 1), n, MPI_INTEGER, 0, 84, turned, &
      ONE_(s, 1), ierr)
    call status_is(ONE_(s, 1), 0, 84, n)
    call expect('data of its own', all(in(1:n, 1) == out(1:n, 1)))
    call MPI_Comm_free(turned, ierr)
  end subroutine

  ! Every second element: the compiler copies it in and out, or hands on a descriptor, which only
  ! mpi_f08 can do and without which nonblocking calls would write into a copy that is gone.
  subroutine sections
    REQUEST_ :: requests(2)
    STATUS_(s)
    integer :: i, wrong, last

    about = 'array sections'
    last = 2 * n - 1
    call spread_out(91)
    if (rank == 0) then
      call MPI_Send(out(1:last:2, 1), n, MPI_INTEGER, peer, 91, MPI_COMM_WORLD, ierr)
      call MPI_Recv(in(1:last:2, 1), n, MPI_INTEGER, peer, 91, MPI_COMM_WORLD, s, ierr)
    else
      call MPI_Recv(in(1:last:2, 1), n, MPI_INTEGER, peer, 91, MPI_COMM_WORLD, s, ierr)
      call MPI_Send(out(1:last:2, 1), n, MPI_INTEGER, peer, 91, MPI_COMM_WORLD, ierr)
    end if
    call status_is(s, peer, 91, n)
    call spread_in(91)
#if BINDING == 3
    if (.not. MPI_SUBARRAYS_SUPPORTED) return
    about = 'array sections, nonblocking'
    call spread_out(92)
    call MPI_Irecv(in(1:last:2, 1), n, MPI_INTEGER, peer, 92, MPI_COMM_WORLD, requests(1), ierr)
    call MPI_Isend(out(1:last:2, 1), n, MPI_INTEGER, peer, 92, MPI_COMM_WORLD, requests(2), ierr)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
    call spread_in(92)
    about = 'array sections, persistent'
    call spread_out(93)
    call MPI_Recv_init(in(1:last:2, 1), n, MPI_INTEGER, peer, 93, MPI_COMM_WORLD, &
      requests(1), ierr)
    call MPI_Send_init(out(1:last:2, 1), n, MPI_INTEGER, peer, 93, MPI_COMM_WORLD, &
      requests(2), ierr)
    do i = 1, 2
      call spread_out(93)
      call MPI_Startall(2, requests, ierr)
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
      call spread_in(93)
    end do
    do i = 1, 2
      call MPI_Request_free(requests(i), ierr)
    end do
#endif
  end subroutine

  subroutine spread_out(tag)
    integer, intent(in) :: tag
    integer :: i

    out(:, 1) = UNTOUCHED
    in(:, 1) = UNTOUCHED
    do i = 1, n
      out(2 * i - 1, 1) = element(i, rank, tag)
    end do
  end subroutine

  subroutine spread_in(tag)
    integer, intent(in) :: tag
    integer :: i, wrong

    wrong = 0
    do i = 1, n
      if (in(2 * i - 1, 1) /= element(i, peer, tag)) wrong = wrong + 1
      if (in(2 * i, 1) /= UNTOUCHED) wrong = wrong + 1
    end do
    call expect('data', wrong == 0)
  end subroutine

  ! ---- What is refused -------------------------------------------------------------------------

  subroutine class_is(what, class)
    character(len=*), intent(in) :: what
    integer, intent(in) :: class
    integer :: found, error

    found = MPI_SUCCESS
    if (ierr /= MPI_SUCCESS) call MPI_Error_class(ierr, found, error)
    call expect(what, found == class)
  end subroutine

  subroutine wrong_arguments
    REQUEST_ :: request
    STATUS_(s)

    about = 'MPI_ERRORS_RETURN'
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)
    n = 2
    call fill(1, 1)
    call MPI_Send(out(:, 1), n, MPI_INTEGER, 99, 1, MPI_COMM_WORLD, ierr)
    call class_is('no such rank', MPI_ERR_RANK)
    call MPI_Send(out(:, 1), n, MPI_INTEGER, peer, -9, MPI_COMM_WORLD, ierr)
    call class_is('no such tag', MPI_ERR_TAG)
    call MPI_Irecv(in(:, 1), -1, MPI_INTEGER, peer, 1, MPI_COMM_WORLD, request, ierr)
    call class_is('no such count', MPI_ERR_COUNT)
    call MPI_Send_init(out(:, 1), n, MPI_INTEGER, 99, 1, MPI_COMM_WORLD, request, ierr)
    call class_is('no such rank, persistent', MPI_ERR_RANK)
    call MPI_Send(out(:, 1), n, MPI_DATATYPE_NULL, peer, 1, MPI_COMM_WORLD, ierr)
    call class_is('no type', MPI_ERR_TYPE)
    about = 'a message that is too long'
    call MPI_Irecv(in(:, 1), 1, MPI_INTEGER, peer, 2, MPI_COMM_WORLD, request, ierr)
    call MPI_Send(out(:, 1), 2, MPI_INTEGER, peer, 2, MPI_COMM_WORLD, ierr)
    call MPI_Wait(request, s, ierr)
    call class_is('truncated', MPI_ERR_TRUNCATE)
    call expect('nothing behind the buffer', in(2, 1) == UNTOUCHED)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL, ierr)
  end subroutine

  ! ---- Whether a layer stands before the library -----------------------------------------------

  subroutine ask_library
    interface
      function dlsym(handle, name) bind(c)
        import :: c_ptr, c_funptr, c_char
        type(c_ptr), value :: handle
        character(kind=c_char), intent(in) :: name(*)
        type(c_funptr) :: dlsym
      end function
    end interface
    character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: version
    integer :: length

    found_ledger = dlsym(c_null_ptr, 'railmpi_ledger' // c_null_char)
    layered = c_associated(found_ledger)
    call MPI_Get_library_version(version, length, ierr)
    mpich = index(version(1:length), 'MPICH') > 0
    forgets = .not. layered .and. mpich .and. index(version(1:min(length, 60)), ' 4.2.') > 0
  end subroutine

  subroutine tell_layer
    abstract interface
      function ledger(rail, carried) bind(c)
        import :: c_int, c_int64_t
        integer(c_int), value :: rail
        integer(c_int64_t), intent(out) :: carried(8)	! messages, chunks, bytes, ...
        integer(c_int) :: ledger
      end function
    end interface
    procedure(ledger), pointer :: get
    integer(c_int64_t) :: carried(8), bytes
    integer :: rail

    if (rank /= 0) return
    if (.not. layered) then
      print '(a)', 'layer: no'
      return
    end if
    call c_f_procpointer(found_ledger, get)
    bytes = 0
    do rail = 0, 8
      if (get(rail, carried) == 0) bytes = bytes + carried(3)
    end do
    print '(a,i0,a)', 'layer: yes, ', bytes, ' bytes'
  end subroutine

end program
