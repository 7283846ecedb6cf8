/** `relaybox/cdk`: the infrastructure as constructs. */
export {};
