/** WSDLs of many files, by path, as developers have them. */

type Files = Readonly<Record<string, string>>

export const XS = 'xmlns:xs="http://www.w3.org/2001/XMLSchema"'
/** Two namespaces take the same chameleon, which takes another; one of them takes a file with other forms too. */
export const CHAMELEON: Files = {
  'w.wsdl': `<w:definitions name="Chameleon" targetNamespace="urn:t" xmlns:t="urn:t" xmlns:w="http://schemas.xmlsoap.org/wsdl/" ${XS}><w:types><xs:schema targetNamespace="urn:t" xmlns="urn:t" elementFormDefault="qualified"><xs:include schemaLocation="c/one.xsd"/><xs:include schemaLocation="forms.xsd"/><xs:import namespace="urn:u" schemaLocation="u.xsd"/>
      <xs:element name="a"><xs:complexType><xs:sequence><xs:element name="mine" type="T"/><xs:element name="theirs" type="u:V" xmlns:u="urn:u"/><xs:element name="loose" type="F"/></xs:sequence></xs:complexType></xs:element></xs:schema></w:types>
  <w:message name="m"><w:part name="p" element="t:a"/></w:message><w:portType name="P"><w:operation name="Op"><w:input message="t:m"/><w:output message="t:m"/></w:operation></w:portType></w:definitions>`,
  'c/one.xsd': `<?xml version="1.0"?><!-- a chameleon --><xs:schema ${XS} elementFormDefault="qualified"><xs:include schemaLocation="two.xsd"/><xs:import namespace="urn:far" schemaLocation="../far.xsd"/><xs:complexType name="T"><xs:sequence><xs:element name="v" type="N"/><xs:element ref="e"/><xs:element name="far" type="f:Far" xmlns:f="urn:far"/></xs:sequence></xs:complexType></xs:schema>`,
  'c/two.xsd': `<xs:schema ${XS} elementFormDefault="qualified"><xs:include schemaLocation="one.xsd"/><xs:simpleType name="N"><xs:restriction base="xs:int"/></xs:simpleType><xs:element name="e" type="N"/></xs:schema>`,
  'forms.xsd': `<xs:schema ${XS} targetNamespace="urn:t"><xs:complexType name="F"><xs:sequence><xs:element name="unqualified" type="xs:string"/></xs:sequence></xs:complexType></xs:schema>`,
  'u.xsd': `<xs:schema ${XS} targetNamespace="urn:u" xmlns:me="urn:u" elementFormDefault="qualified"><xs:include schemaLocation="c/one.xsd"/><xs:complexType name="V"><xs:complexContent><xs:extension base="me:T"/></xs:complexContent></xs:complexType></xs:schema>`,
  'far.xsd': '<schema xmlns="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:far" xmlns:q="urn:far"><simpleType name="Far"><restriction base="q:Deep"/></simpleType><simpleType name="Deep"><restriction base="string"/></simpleType></schema>'
}

/** As WCF splits one: service and bindings in one namespace, the contract in another, messages by a third file of the first. */
export const SPLIT: Files = {
  'service.wsdl': `<?xml version="1.0"?><w:definitions name="Shop" targetNamespace="urn:service" xmlns:w="http://schemas.xmlsoap.org/wsdl/" xmlns:c="urn:contract" xmlns:me="urn:service" xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/">
  <w:import namespace="urn:contract" location="contract.wsdl"/>
  <w:binding name="Basic" type="c:IShop"><soap:binding transport="http://schemas.xmlsoap.org/soap/http"/><w:operation name="Buy"><soap:operation soapAction=""/><w:input><soap:body use="literal"/></w:input><w:output><soap:body use="literal"/></w:output></w:operation></w:binding>
  <w:service name="Shop"><w:port name="Basic" binding="me:Basic"><soap:address location="http://old/"/></w:port></w:service>
</w:definitions>`,
  'contract.wsdl': `<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" targetNamespace="urn:contract" xmlns:tns="urn:contract" xmlns:m="urn:messages" xmlns:x="urn:data">
  <documentation>The contract.</documentation><import namespace="urn:messages" location="messages.wsdl"/><import namespace="urn:data" location="data.xsd"/>
  <portType name="IShop"><operation name="Buy"><input message="m:Buy"/><output message="m:Bought"/></operation></portType></definitions>`,
  'messages.wsdl': `<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" targetNamespace="urn:messages" xmlns:x="urn:data" xmlns:e="urn:embedded"><types><s:schema xmlns:s="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:embedded"><s:import namespace="urn:data" schemaLocation="data.xsd"/><s:element name="Bought" type="x:Thing"/></s:schema></types>
  <message name="Buy"><part name="p" element="x:Buy"/></message><message name="Bought"><part name="p" element="e:Bought"/></message></definitions>`,
  'data.xsd': `<xs:schema ${XS} targetNamespace="urn:data" xmlns:d="urn:data"><xs:element name="Buy" type="d:Thing"/><xs:simpleType name="Thing"><xs:restriction base="xs:string"/></xs:simpleType></xs:schema>`
}
