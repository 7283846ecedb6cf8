/** How far figures count. One more is read, to know that there are more. */
export const countLimit = 10_000;
