#!/usr/bin/env python3
"""run.py - rdma-core's own Python tests, unmodified, one line per test.

	run.py [--required FILE] [--fails TEST]... [--only PATTERN] [--limit SECONDS]
		TESTS -- OPTION...

TESTS is the directory that holds their run_tests.py; OPTIONs are theirs (--dev soft0).
They run in a child, as run_tests.py loads them.  A test that crashes or does not end
within its limit costs that test alone: its stack is shown, and a new child goes on
behind it.

Prints "pass|skip|fail|error TEST[: reason]" and the sums.  Fails if a test failed (but
for those known to: they must), if none passed, or if one of those that FILE names (one
per line, # comments) did not pass.
"""
import argparse
import ctypes
import faulthandler
import fnmatch
import gc
import importlib.util
import os
import signal
import subprocess
import sys
import time
import traceback
import unittest


# ---- The child: runs what is left -----------------------------------------------------

class Lines(unittest.TestResult):
    """Each outcome at once, as a line on the descriptor out."""

    def __init__(self, out, limit):
        super().__init__()
        self.out, self.limit, self.pid = out, limit, os.getpid()

    def say(self, word, test, why=''):
        # A test may fork: what a child of it thinks is the test's own business.
        if os.getpid() == self.pid:
            os.write(self.out, f'{word}\t{test.id()}\t{why}\n'.encode())

    def startTest(self, test):
        super().startTest(test)
        self.outcome = None
        faulthandler.dump_traceback_later(self.limit, exit=True)
        self.say('start', test)

    def stopTest(self, test):
        super().stopTest(test)
        faulthandler.cancel_dump_traceback_later()
        self.say(*(self.outcome or ('pass', test)))

    def bad(self, word, test, err):
        print(self._exc_info_to_string(err, test), file=sys.stderr, flush=True)
        last = traceback.extract_tb(err[2])[-1]
        why = ' '.join(f'{err[0].__name__}: {err[1]}'.split())
        why += f' ({os.path.basename(last.filename)}:{last.lineno})'
        # The first of several is the cause; what tearDown says of it is not.
        if not self.outcome or self.outcome[0] == 'skip':
            self.outcome = (word, test, why)

    def addError(self, test, err):
        if not hasattr(test, '_testMethodName'):    # setUpClass, a module
            self.outcome = None
            self.bad('error', test, err)
            self.say(*self.outcome)
            return
        self.bad('error', test, err)

    def addFailure(self, test, err):
        self.bad('fail', test, err)

    def addSubTest(self, test, subtest, err):
        if err:
            self.bad('fail', test, err)

    def addSkip(self, test, reason):
        self.outcome = self.outcome or ('skip', test, ' '.join(reason.split()))

    def addUnexpectedSuccess(self, test):
        self.outcome = ('fail', test, 'unexpected success')


def load(directory, options):
    """The suite as their run_tests.py makes it."""
    sys.path.insert(0, directory)
    sys.argv = [os.path.join(directory, 'run_tests.py')] + options
    from args_parser import parser
    spec = importlib.util.spec_from_file_location(
        'tests', os.path.join(directory, '__init__.py'),
        submodule_search_locations=[directory])
    tests = sys.modules['tests'] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tests)
    parser.parse_args()
    return unittest.defaultTestLoader.loadTestsFromModule(tests)


def flat(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flat(item)
        else:
            yield item


def child(args, done):
    out = int(os.environ.pop('PYVERBS_LINES'))
    os.set_inheritable(out, False)
    # What a test forks must not keep the parent waiting.
    os.register_at_fork(after_in_child=lambda: os.close(out))
    faulthandler.enable()
    # Of a cycle of garbage pyverbs closes the context first, now and then (Python 3.13), and then uses
    # what closing it has freed.
    gc.disable()
    left = unittest.TestSuite()
    for test in flat(load(args.tests, args.options)):
        if test.id() not in done and fnmatch.fnmatch(test.id(), args.only):
            left.addTest(test)
    left.run(Lines(out, args.limit))
    os.write(out, b'end\t\t\n')
    # Objects that failing tests left behind are not torn down in any good order: the C library's exit,
    # where libraries of `make coverage` write their counts, leaves Python's objects alone.
    ctypes.CDLL(None).exit(0)


# ---- The parent: counts ---------------------------------------------------------------

def end_of(status):
    if status < 0:
        return 'died of ' + signal.Signals(-status).name
    return f'the process ended, exit code {status}'


def run(args):
    """Outcomes by test, in order."""
    outcomes = {}
    while True:
        read, write = os.pipe()
        os.set_inheritable(write, True)
        process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), '--child'] + sys.argv[1:],
            stdin=subprocess.PIPE, stdout=sys.stderr, pass_fds=[write],
            env=dict(os.environ, PYVERBS_LINES=str(write)), start_new_session=True)
        os.close(write)
        process.stdin.write('\n'.join(outcomes).encode())
        process.stdin.close()
        running, ended, began = None, False, time.monotonic()
        # Its own watchdog ends a test; a line more late than that, and the child is gone.
        with os.fdopen(read) as lines:
            for line in lines:
                word, test, why = line.rstrip('\n').split('\t', 2)
                if word == 'end':
                    ended = True
                    break
                if word == 'start':
                    running, began = test, time.monotonic()
                    continue
                outcomes[test], running = (word, why), None
                print(f'{word} {test}' + (f': {why}' if why else ''), flush=True)
        status = process.wait()
        try:
            os.killpg(process.pid, signal.SIGKILL)      # what a test left running
        except ProcessLookupError:
            pass
        if ended:
            return outcomes
        if not running:
            print(f'error: no test was running: {end_of(status)}')
            outcomes['(loading)'] = ('error', end_of(status))
            return outcomes
        why = end_of(status)
        if time.monotonic() - began >= args.limit:
            why = f'no end within {args.limit} s'
        outcomes[running] = ('error', why)
        print(f'error {running}: {why}', flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    p.add_argument('--child', action='store_true', help=argparse.SUPPRESS)
    p.add_argument('--required', metavar='FILE')
    p.add_argument('--fails', metavar='TEST', action='append', default=[])
    p.add_argument('--only', metavar='PATTERN', default='*')
    p.add_argument('--limit', type=int, default=60)
    p.add_argument('tests')
    p.add_argument('options', nargs='*')
    args = p.parse_args()
    args.tests = os.path.abspath(args.tests)
    if args.child:
        child(args, set(sys.stdin.read().split('\n')))
    outcomes = run(args)
    sums = {word: 0 for word in ('pass', 'skip', 'fail', 'error')}
    for word, _ in outcomes.values():
        sums[word] += 1
    bad = [name for name, (word, _) in outcomes.items()
           if (word in ('fail', 'error')) != (name in args.fails)]
    for name in bad:
        if name in args.fails:
            print(f'known to fail, but: {outcomes[name][0]} {name}')
    missed = []
    if args.required:
        with open(args.required, encoding='utf-8') as names:
            required = [line.strip() for line in names if line.strip() and line[0] != '#']
        missed = [name for name in required if fnmatch.fnmatch(name, args.only)
                  and outcomes.get(name, ('absent',))[0] != 'pass']
        for name in missed:
            print(f'required, but: {" ".join(outcomes.get(name, ("absent", ""))).strip()}: {name}')
        print(f'{len(required)} required, {len(missed)} of them did not pass')
    print(f'{len(outcomes)} tests: {sums["pass"]} passed, {sums["skip"]} skipped, '
          f'{sums["fail"]} failed, {sums["error"]} errors')
    sys.exit(bool(missed or bad or not sums['pass']))


main()
