# reframe.py - data/reframe/railgauge.py without ReFrame: a class's command, and its sanity and performance
# functions over the output of a run, in the current directory.
#
#	reframe.py FILE CLASS command		the words of its program
#	reframe.py FILE CLASS judge STDOUT	"sanity: True", "NAME: VALUE UNIT"; exit code 1: no sanity
import builtins
import re
import sys
import types

tests = {}


class Test:
    stdout = None
    executable_opts = []

    def __init_subclass__(cls):
        tests[cls.__name__] = cls


def variable(kind, value):
    return value


def run_before(stage):
    def mark(function):
        function.stage = stage
        return function
    return mark


def sanity_function(function):
    function.sanity = True
    return function


def performance_function(unit):
    def mark(function):
        function.unit = unit
        return function
    return mark


def found(pattern, path):
    with open(path, encoding='utf-8') as file:
        return re.search(pattern, file.read(), re.MULTILINE) is not None


# Those of ReFrame delay all of this until after the run.
sanity = types.ModuleType('reframe.utility.sanity')
sanity.assert_found = found
sanity.assert_not_found = lambda pattern, path: not found(pattern, path)
sanity.all, sanity.max, sanity.min = builtins.all, builtins.max, builtins.min
sanity.avg = lambda values: sum(values) / len(values)


def extractall(pattern, path, tag, conv):
    with open(path, encoding='utf-8') as file:
        return [conv(match.group(tag)) for match in re.finditer(pattern, file.read(), re.MULTILINE)]


sanity.extractall = extractall


def load(path):
    reframe, utility = types.ModuleType('reframe'), types.ModuleType('reframe.utility')
    reframe.RunOnlyRegressionTest = Test
    reframe.simple_test = lambda cls: cls
    reframe.utility, utility.sanity = utility, sanity
    sys.modules.update({'reframe': reframe, 'reframe.utility': utility,
                        'reframe.utility.sanity': sanity})
    # ReFrame gives class bodies these names.
    names = {'__name__': 'railgauge', 'variable': variable, 'run_before': run_before,
             'sanity_function': sanity_function, 'performance_function': performance_function}
    with open(path, encoding='utf-8') as file:
        exec(compile(file.read(), path, 'exec'), names)


def functions(test, mark):
    for name in dir(test):
        function = getattr(test, name)
        if hasattr(function, mark):
            yield name, function


def main(path, name, action, *stdout):
    load(path)
    test = tests[name]()
    if action == 'command':
        for _, function in functions(test, 'stage'):
            function()
        print(test.num_tasks, test.executable, *test.executable_opts)
        return 0
    test.stdout = stdout[0]
    right = True
    for _, function in functions(test, 'sanity'):
        right = function() and right
    print('sanity:', right)
    for name, function in functions(test, 'unit'):
        print(f'{name}: {function():.6g} {function.unit}'.rstrip())
    return 0 if right else 1


sys.exit(main(*sys.argv[1:]))
