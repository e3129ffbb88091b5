"""Sends elements that a schema leaves open, and gets them back: python3 zeep_raw.py URL. Prints what was sent and what came, as canonical XML."""
import json, sys

import zeep
from lxml import etree

SENT = ['<x xmlns="urn:x" a="1">text &amp; <y xmlns="">more</y></x>', '<p:q xmlns:p="urn:p" xmlns:z="urn:z" ref="z:T"/>']  # a prefix in a value needs its declaration too


def canonical(element):
    return etree.tostring(element, method='c14n', exclusive=True, inclusive_ns_prefixes=['z']).decode()


reply = zeep.Client(sys.argv[1]).service.Echo(before=7, _value_1=[etree.fromstring(text) for text in SENT])
print(json.dumps({'before': reply.before, 'sent': [canonical(etree.fromstring(text)) for text in SENT], 'came': [canonical(element) for element in reply._value_1]}))
