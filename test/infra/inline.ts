import { aws_lambda as lambda } from 'aws-cdk-lib';

/** A function's code where a test looks at the function alone. */
export const inline = lambda.Code.fromInline('export const handler = async () => undefined;');
