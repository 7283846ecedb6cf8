import type { Failure } from '../delivery/failure.ts';

/** An error of an AWS client, as far as it says anything; nothing of it is relied on to be there. */
interface AwsError {
  readonly name?: unknown;
  readonly code?: unknown;
  readonly message?: unknown;
  readonly cause?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: unknown };
}

/** The broker asks for less. Some of these come with a status of 400 or 403. */
const throttled = new Set([
  'BandwidthLimitExceeded',
  'LimitExceededException',
  'OverLimit',
  'PriorRequestNotComplete',
  'ProvisionedThroughputExceededException',
  'RequestLimitExceeded',
  'RequestThrottled',
  'RequestThrottledException',
  'SlowDown',
  'Throttled',
  'ThrottledException',
  'Throttling',
  'ThrottlingException',
  'TooManyRequestsException',
]);

/** Who we are, or what we may, is not right (any more, or yet). */
const notAllowed = new Set([
  'AccessDenied',
  'AccessDeniedException',
  'AuthFailure',
  'CredentialsProviderError',
  'ExpiredToken',
  'ExpiredTokenException',
  'IncompleteSignature',
  'InvalidAccountIdException',
  'InvalidClientTokenId',
  'InvalidSecurity',
  'InvalidSignatureException',
  'MissingAuthenticationToken',
  'NotAuthorized',
  'NotAuthorizedForSourceException',
  'OptInRequired',
  'RequestExpired',
  'RequestTimeTooSkewed',
  'SignatureDoesNotMatch',
  'TokenRefreshRequired',
  'UnauthorizedOperation',
  'UnrecognizedClientException',
]);

/** The queue or bus is not there. */
const missing = new Set([
  'InvalidAddress',
  'NonExistentQueue',
  'QueueDeletedRecently',
  'QueueDoesNotExist',
  'ResourceNotFoundException',
]);

/** The broker is at fault, whatever the status. */
const broken = new Set([
  'InternalError',
  'InternalException',
  'InternalFailure',
  'InternalServerError',
  'InternalServerException',
  'InternalServiceError',
  'InternalServiceException',
  'RequestTimeout',
  'RequestTimeoutException',
  'ServiceUnavailable',
  'ServiceUnavailableException',
  'ServiceUnavailableError',
  'TimeoutError',
]);

/** The message itself can never pass. */
const refused = new Set([
  'BatchRequestTooLong',
  'InvalidArgument',
  'InvalidAttributeName',
  'InvalidAttributeValue',
  'InvalidMessageContents',
  'InvalidParameterCombination',
  'InvalidParameterValue',
  'MalformedDetail',
  'MessageTooLong',
  'MissingParameter',
  'NotAuthorizedForDetailTypeException',
  'RequestEntityTooLarge',
  'ValidationError',
  'ValidationException',
]);

/** No connection came about, so that no message can be its cause. */
const unreachable = new Set([
  'ECONNREFUSED',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EADDRNOTAVAIL',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/**
 * What an error of a whole call means. A broker that answered 4xx is there, so that a message of the call is at fault;
 * all that tells of no answer, or of a broker that can't, is an outage and uses up no message's retries.
 * @param subject whom the call went to, for the reason
 */
export function classifyError(error: unknown, subject: string): Failure {
  const reason = reasonOf(error, subject);
  const codes = codesOf(error);
  const status = statusOf(error);
  if (codes.some(isLaneWide) || [401, 403, 404, 407, 429].includes(status)) {
    // Some of SQS's 403 and 404 are about the message, so that the name decides before the status does.
    if (!codes.some((code) => refused.has(code))) return { kind: 'unavailable', reason, laneWide: true };
  }
  if (codes.some((code) => broken.has(code))) return { kind: 'unavailable', reason };
  if (status >= 400 && status < 500) return { kind: 'failed', reason };
  return { kind: 'unavailable', reason };
}

/**
 * What an entry's code means, where the call as such went through. An outage may come so, too: with status 200, and each
 * entry failed by the broker's own fault. Whether it is one, or this message's doing, the other messages' answers tell.
 * @param senderFault whose fault the broker says it is, where it says so
 */
export function classifyEntry(
  code: string | undefined,
  message: string | undefined,
  senderFault: boolean | undefined,
  subject: string,
): Failure {
  const reason = shorten(`${subject}: ${code ?? 'no code'}: ${message ?? 'no reason given'}`);
  const plain = plainCode(code ?? '');
  if (isLaneWide(plain)) return { kind: 'unavailable', reason, laneWide: true };
  if (refused.has(plain)) return { kind: senderFault === false ? 'failed' : 'rejected', reason };
  if (senderFault === false || (broken.has(plain) && senderFault !== true))
    return { kind: 'unavailable', reason };
  return { kind: 'failed', reason };
}

/** True where the call's error says that its content can never pass. Of one entry alone, that entry is meant. */
export function refusesContent(error: unknown): boolean {
  return statusOf(error) === 413 || codesOf(error).some((code) => refused.has(code));
}

function isLaneWide(code: string): boolean {
  return (
    throttled.has(code) ||
    notAllowed.has(code) ||
    missing.has(code) ||
    unreachable.has(code) ||
    code.startsWith('CERT_') ||
    code.startsWith('ERR_TLS_') ||
    // SQS and EventBridge pass on what the key's service said, in several spellings.
    /^kms/i.test(code)
  );
}

/** Names and codes of the error and of what caused it. */
function codesOf(error: unknown): string[] {
  const codes: string[] = [];
  let current = error as AwsError | undefined;
  for (let depth = 0; depth < 5 && typeof current === 'object' && current !== null; depth++) {
    for (const code of [current.name, current.code])
      if (typeof code === 'string') codes.push(plainCode(code));
    current = current.cause as AwsError | undefined;
  }
  return codes;
}

/** `com.amazonaws.sqs#QueueDoesNotExist` and `AWS.SimpleQueueService.NonExistentQueue` without what is before the name. */
function plainCode(code: string): string {
  return /^kms/i.test(code) ? code : code.replace(/^.*[.#]/, '');
}

function statusOf(error: unknown): number {
  const status = (error as AwsError | undefined)?.$metadata?.httpStatusCode;
  return typeof status === 'number' ? status : 0;
}

function reasonOf(error: unknown, subject: string): string {
  const { name, code, message } = (typeof error === 'object' && error !== null ? error : {}) as AwsError;
  const said = [name, code, message].filter(
    (part) => typeof part === 'string' && part !== '' && part !== 'Error',
  );
  return shorten(`${subject}: ${said.length > 0 ? said.join(': ') : String(error)}`);
}

function shorten(text: string): string {
  return text.length > 500 ? `${text.slice(0, 500)}…` : text;
}
