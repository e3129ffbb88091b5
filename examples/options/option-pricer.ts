// Made from OptionPricer.wsdl by "soa service types": change that, not this file.

export interface IOptionPricer {
  Price: {
    args: {
      spot: number
      strike: number
      rate: number
      volatility: number
      years: number
      isCall: boolean
      paths?: number
      seed: number
    }
    result: {
      PriceResult?: Quote | null
    }
  }
}

/** {urn:soa-broker:option-pricer}Quote */
export interface Quote {
  instance: string | null
  price: number
  standardError: number
  taskId: string | null
}
