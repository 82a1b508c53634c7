-- What is odd about a feed that is read without an error, in words for customers; NULL where nothing is.
ALTER TABLE feeds ADD COLUMN notice text;
