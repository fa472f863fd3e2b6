"""What people and programs are shown of plans and commands, and answers to recorded questions.

Owns the JSON form and the sentences. Decides nothing.
"""
