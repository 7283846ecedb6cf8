/**
 * Stands for the ways to credentials that a Lambda function never goes: profiles, single sign-on, processes, web
 * identities. Its role's credentials are in its environment, which the SDK asks first. Each answers as one that has
 * none, so that the SDK's chain goes on and ends with its own error.
 */
const none = () => async () => {
  throw Object.assign(new Error('This bundle takes credentials from its environment alone'), {
    name: 'CredentialsProviderError',
    tryNextLink: true,
  });
};

export {
  none as fromIni,
  none as fromLoginCredentials,
  none as fromProcess,
  none as fromSSO,
  none as fromTokenFile,
  none as fromWebToken,
};
