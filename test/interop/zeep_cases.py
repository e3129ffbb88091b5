"""Calls a service with all cases of a WSDL, through zeep as it comes: python3 zeep_cases.py URL CASES_DIR NAME. Prints JSON: {binding: {case: what was wrong, or null}}."""
import base64
import decimal
import glob
import json
import math
import os
import sys

import isodate
import zeep
from zeep import xsd

URL, DIR, NAME = sys.argv[1:4]
client = zeep.Client(URL)


def argument(value, in_list=False):
    """A value of the cases' JSON as zeep wants it."""
    if value is None:
        return None if in_list else xsd.Nil
    if isinstance(value, list):
        return [argument(one, True) for one in value]
    if not isinstance(value, dict):
        return value
    for mark, make in (('$i', int), ('$d', decimal.Decimal), ('$f', lambda text: float(text)), ('$t', isodate.parse_datetime), ('$u', isodate.parse_duration)):
        if mark in value:
            return make(value[mark])
    if '$b' in value:
        return base64.b64decode(value['$b'])
    fields = {('_value_1' if key == '$' else key.lstrip('@')): argument(one) for key, one in value.items() if key != '$type'}
    return client.get_type(value['$type'])(**fields) if '$type' in value else fields


def is_empty(value):
    if isinstance(value, (type(None), list)):
        return not value
    return hasattr(value, '_xsd_type') and all(is_empty(value[key]) for key in dir(value))


def differs(expected, actual, at=''):
    """Where the reply is not what the JSON says; None: the same."""
    no = '%s: %s, not %r' % (at or '/', json.dumps(expected), actual)
    # zeep does not tell nil from an element without content, so neither can we here; in the text both are looked at by other tests.
    if expected is None:
        return None if is_empty(actual) else no
    if expected == '' or expected == {'$b': ''}:
        return None if actual in (None, '', b'') else no
    if isinstance(expected, list):
        if not isinstance(actual, list) or len(actual) != len(expected):
            return no
        return next((found for found in (differs(one, actual[i], '%s[%d]' % (at, i)) for i, one in enumerate(expected)) if found), None)
    if not isinstance(expected, dict):
        return None if expected == actual and isinstance(expected, bool) == isinstance(actual, bool) else no
    if '$i' in expected:
        return None if isinstance(actual, int) and actual == int(expected['$i']) else no
    if '$d' in expected:
        return None if isinstance(actual, decimal.Decimal) and actual == decimal.Decimal(expected['$d']) else no
    if '$f' in expected:
        number = float(expected['$f'])
        return None if isinstance(actual, float) and (actual == number or (math.isnan(actual) and math.isnan(number))) else no
    if '$t' in expected:
        return None if actual == isodate.parse_datetime(expected['$t']) else no
    if '$u' in expected:
        return None if actual == isodate.parse_duration(expected['$u']) else no
    if '$b' in expected:
        return None if actual == base64.b64decode(expected['$b']) else no
    if actual is None:
        return None if not expected else no
    if isinstance(actual, list) and len(expected) == 1:
        return differs(next(iter(expected.values())), actual, at)  # nor the element around a list that is all there is
    if '$type' in expected and str(actual._xsd_type.qname) != expected['$type']:
        return '%s: of type %s, not %s' % (at, actual._xsd_type.qname, expected['$type'])
    fields = {('_value_1' if key == '$' else key.lstrip('@')): one for key, one in expected.items() if key != '$type'}
    read = actual if isinstance(actual, dict) else {key: actual[key] for key in dir(actual)}
    more = next((key for key, one in read.items() if key not in fields and one not in (None, [])), None)
    if more is not None:
        return '%s/%s: only in the reply: %r' % (at, more, read[more])
    return next((found for found in (differs(one, read.get(key), '%s/%s' % (at, key)) for key, one in fields.items()) if found), None)


def run(service, path):
    case = os.path.basename(path)[:-len('.req.json')]
    operation = case.split('.')[1]
    with open(path) as file:
        fields = argument(json.load(file))
    try:
        answer = service[operation](**fields)
    except Exception as error:
        return case, '%s: %s' % (type(error).__name__, error)
    expected_file = path.replace('.req.json', '.rep.json')
    if not os.path.exists(expected_file):
        return case, None if answer is None else 'a one-way call had a reply: %r' % answer
    with open(expected_file) as file:
        expected = json.load(file)
    # zeep hands out the one field of a reply, and not the element around it.
    if len(expected) == 1 and not (hasattr(answer, '_xsd_type') and set(dir(answer)) == set(expected)):
        return case, differs(next(iter(expected.values())), answer, next(iter(expected)))
    return case, differs(expected, answer)


found = {}
for wsdl_service in client.wsdl.services.values():
    for port in wsdl_service.ports.values():
        service = client.bind(wsdl_service.name, port.name)
        found[type(port.binding).__name__] = dict(run(service, path) for path in sorted(glob.glob(os.path.join(DIR, NAME + '.*.req.json'))))
# What a program gets that asks for nothing.
found['default'] = dict(run(client.service, path) for path in sorted(glob.glob(os.path.join(DIR, NAME + '.*.req.json')))[:1])
print(json.dumps(found))
