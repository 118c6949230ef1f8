# railgauge.py - tests of rails for ReFrame (https://reframe-hpc.readthedocs.io), 4.0 and later.
#
#   reframe -C SETTINGS.py -c PREFIX/share/railgauge/reframe/railgauge.py -r
#
# The programs are found by PATH or by a module of the environment.  Sizes, numbers of tasks and options
# are those of a site:
#
#   reframe ... -S rail_bandwidth.size=1M -S rail_pairs.num_tasks=64 -S rail_pairs.options='--time-cap 2'
#
# and so are references, in a class of its own:
#
#   @rfm.simple_test
#   class my_rails(rail_bandwidth):
#       reference = {'cluster:hdr': {'stripe': (48000, -0.05, None, 'MB/s'),
#                                    'gain': (1.9, -0.05, None, '')}}
import reframe as rfm
import reframe.utility.sanity as sn

# Of standard output: data were checked, and were wrong.
CHECKED = r'^\d+( +\d+\.\d+)+ +Pass$|^# validation: Pass'
WRONG = r'\bFail\b'
# Of the records: rows of a way, and the end of a program that ended well.
RECORD = r'"type":"row","way":"%s","bytes":\d+,.*?"median":(?P<median>\d+(\.\d+)?(e[-+]?\d+)?)'
ENDED = r'"type":"end","status":0,'
RECORDS = 'rails.jsonl'


def medians(way):
    '''The medians of all rows of a way, a regular expression.'''
    return sn.extractall(RECORD % way, RECORDS, 'median', float)


class railgauge_test(rfm.RunOnlyRegressionTest):
    '''A program of the suite that checks all data and writes records.'''

    valid_systems = ['*']
    valid_prog_environs = ['*']
    num_tasks = 2
    num_tasks_per_node = 1
    time_limit = '10m'
    keep_files = [RECORDS]

    #: The message size.
    size = variable(str, value='4M')
    #: Further options of the program.
    options = variable(str, value='')

    @run_before('run')
    def set_options(self):
        self.executable_opts += ['--validate', '--sizes', self.size, '--json', RECORDS,
                                 '--overwrite', self.options]

    @sanity_function
    def data_are_right(self):
        return sn.all([sn.assert_found(CHECKED, self.stdout),
                       sn.assert_not_found(WRONG, self.stdout),
                       sn.assert_found(ENDED, RECORDS)])


@rfm.simple_test
class rail_bandwidth(railgauge_test):
    '''Bandwidth between two nodes: one rail, all rails, and how much they bring.'''

    executable = 'rg_bw'
    executable_opts = ['--over', 'single,stripe']

    @performance_function('MB/s')
    def single(self):
        return sn.max(medians('single'))

    @performance_function('MB/s')
    def stripe(self):
        return sn.max(medians('stripe'))

    @performance_function('')
    def gain(self):
        return sn.max(medians('stripe')) / sn.max(medians('single'))


@rfm.simple_test
class rail_pairs(railgauge_test):
    '''Every node, each rail alone: the slowest, and its share of the mean.'''

    executable = 'rg_pairs'
    size = '1M'

    @performance_function('MB/s')
    def slowest(self):
        return sn.min(medians('single:[0-9]+'))

    @performance_function('')
    def share(self):
        return sn.min(medians('single:[0-9]+')) / sn.avg(medians('single:[0-9]+'))
